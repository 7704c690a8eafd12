#include "halosvm/solver.hpp"

namespace halosvm {

const char* message(Status status) {
  switch (status) {
    case Status::converged:
      return "the certified suboptimality is within the tolerance";
    case Status::max_iterations:
      return "the allowed number of passes over the data ended before the tolerance was certified";
  }
  return "";
}

}  // namespace halosvm
