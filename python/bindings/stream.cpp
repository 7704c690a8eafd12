#include "bindings.hpp"

#include "halosvm/core/check.hpp"

#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

namespace halosvm::bindings {
namespace {

using StreamCodes = py::array_t<std::int16_t, py::array::c_style>;

/// The state of a walk as a tuple of arrays and numbers, in the order of \ref StreamState.
py::tuple stream_to_tuple(const StreamState& state) {
  const Iterates& at = state.iterates;
  return py::make_tuple(at.coef, at.average, at.centre, at.scale, at.factors, at.centre_square, at.along_centre,
                        at.square, at.changed, state.intercept, state.average_intercept, state.square, state.weight,
                        state.steps);
}

StreamState stream_from_tuple(const py::tuple& tuple) {
  StreamState state;
  Iterates& at = state.iterates;
  std::size_t place = 0;
  const auto read = [&](auto&... values) { ((values = tuple[place++].cast<std::decay_t<decltype(values)>>()), ...); };
  read(at.coef, at.average, at.centre, at.scale, at.factors, at.centre_square, at.along_centre, at.square, at.changed,
       state.intercept, state.average_intercept, state.square, state.weight, state.steps);
  return state;
}

py::tuple begin_stream(const Doubles& coef, const Doubles& intercept) {
  LinearModel start;
  start.coef = coef.cast<Matrix>();
  start.intercept = intercept.cast<Vector>();
  return stream_to_tuple(StreamState(start));
}

py::tuple stream_model(const py::tuple& state) {
  LinearModel model = stream_from_tuple(state).model();
  return py::make_tuple(std::move(model.coef), std::move(model.intercept));
}

py::tuple follow_stream(const PyGaussians& data, const py::tuple& before, double lam, const std::string& loss,
                        bool fit_intercept, double norm, const std::optional<StreamCodes>& codes,
                        const std::optional<Doubles>& high, const std::optional<Doubles>& low, double share_high,
                        double share_low, const std::optional<Doubles>& variances,
                        const std::optional<Doubles>& sample_weight) {
  const auto one_for_each_row = [&](const std::optional<Doubles>& array, const char* name) -> const double* {
    if (!array) return nullptr;
    require_ndim(*array, name, 1);
    check::same_size(name, array->shape(0), "X", data.view.n_samples(), "rows");
    return array->data();
  };
  const Gaussians view(data.view.shared_means(), in_norm(data.view.shared_covariances(), norm));
  StreamExamples examples{
      view, nullptr, {}, one_for_each_row(sample_weight, "sample_weight"), one_for_each_row(variances, "variances")};
  if (codes) {
    check::same_size("labels", codes->shape(0), "X", data.view.n_samples(), "rows");
    examples.codes = codes->data();
    examples.terms = {{nullptr, 0.0, 1.0}};
  } else {
    check::require(high && low, "high, low", "are needed without labels");
    examples.terms = {{one_for_each_row(high, "high"), 1.0, share_high},
                      {one_for_each_row(low, "low"), -1.0, share_low}};
  }
  StreamState state = stream_from_tuple(before);
  {
    const py::gil_scoped_release release;
    follow(examples, *make_loss(loss), lam, fit_intercept, interruptible(1), state);
  }
  return stream_to_tuple(state);
}

}  // namespace

void bind_stream(py::module_& module) {
  module.def("begin_stream", &begin_stream, py::arg("coef"), py::arg("intercept"),
             "The state of a walk before its first example, at a model.");
  module.def("stream_model", &stream_model, py::arg("state"), "Coefficients and intercepts of a walk's model.");
  module.def("follow_stream", &follow_stream, py::arg("data"), py::arg("before"), py::kw_only(), py::arg("lam"),
             py::arg("loss"), py::arg("fit_intercept"), py::arg("norm") = 2.0, py::arg("codes") = py::none(),
             py::arg("high") = py::none(), py::arg("low") = py::none(), py::arg("share_high") = 1.0,
             py::arg("share_low") = 1.0, py::arg("variances") = py::none(), py::arg("sample_weight") = py::none(),
             "The state of a walk along a stream after these examples.");
}

}  // namespace halosvm::bindings
