// Matrix products: the one place that compiles Eigen's kernels.

#include "linalg/products.hpp"

#ifdef HALOSVM_PRODUCT_KERNELS
HALOSVM_PRODUCT_KERNELS(template)
#endif
