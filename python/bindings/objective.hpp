/// \file
/// The objective together with the arrays that it looks into; shared by the bindings of the solvers.
#pragma once

#include "bindings.hpp"

#include "halosvm/check.hpp"

#include <utility>

namespace halosvm::bindings {

struct PyObjective {
  LocalObjective objective;
  std::vector<py::object> owners;
};

struct PySummedObjective {
  SummedObjective objective;
};

}  // namespace halosvm::bindings
