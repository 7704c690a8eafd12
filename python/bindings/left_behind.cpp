// Calculations of other libraries that go on in threads nobody waits for, and how the process ends beside them.

#include "bindings.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#ifdef __GLIBC__
#include <unistd.h>
#endif

namespace halosvm::bindings {
namespace {

std::atomic<int> running{0};

#ifdef __GLIBC__
/// After all that Python does at its end, and before the destructors of libraries: OpenBLAS waits in its own for
/// threads that wait for the calculation, for ever.
void leave_at_once(int status, void* /*unused*/) {
  if (running.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
}
#endif

void begin() {
  ++running;
#ifdef __GLIBC__
  static const int registered = on_exit(&leave_at_once, nullptr);
  check::require(registered == 0, "on_exit", "takes no more functions");
#endif
}

}  // namespace

void bind_left_behind(py::module_& module) {
  module.def("begin_left_behind", &begin, "A calculation goes on in a thread that nobody waits for.");
  module.def("end_left_behind", [] { --running; }, "It has ended.");
}

}  // namespace halosvm::bindings
