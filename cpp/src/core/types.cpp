// The version of Eigen that the library is compiled with, as a symbol that files compiled with another one miss.

#include "halosvm/core/types.hpp"

namespace halosvm {

template <int World, int Major>
int compiled_with_eigen() noexcept {
  return 0;
}
template int compiled_with_eigen<EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION>() noexcept;

}  // namespace halosvm
