// The version of Eigen that the library is compiled with, as a symbol that files compiled with another one miss.

#include "halosvm/core/types.hpp"

HALOSVM_PUBLIC_BEGIN  // g++ gives an instantiation the visibility of the place where it stands
namespace halosvm {

template <int World, int Major>
int compiled_with_eigen() noexcept {
  return 0;
}
template int compiled_with_eigen<EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION>() noexcept;

}  // namespace halosvm
HALOSVM_PUBLIC_END
