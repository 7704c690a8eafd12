// Kernel machines of model files: the record of one comes in, the model goes out.

#include "model/stored_kernel.hpp"

#include "halosvm/core/check.hpp"
#include "gaussians/covariances/make.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

namespace halosvm::record {
namespace {

Execution alone() { return {1, {}}; }

/// Requires floating numbers, or integers, of a shape; a size below 0 may be any.
const Array& of_shape(const JsonReader& reader, const Array& array, const std::vector<Index>& shape,
                      bool integers = false) {
  bool right = array.shape.size() == shape.size();
  for (std::size_t k = 0; right && k < shape.size(); ++k) right = shape[k] < 0 || shape[k] == array.shape[k];
  if (!right) {
    const auto text = [](const std::vector<Index>& sizes) {
      std::string out;
      for (const Index size : sizes) out += (out.empty() ? "" : ", ") + (size < 0 ? "any" : std::to_string(size));
      return '(' + out + ')';
    };
    reader.fail_at(array.place, array.name + " has shape " + text(array.shape) + ", expected " + text(shape));
  }
  if (integers ? !(array.numbers.empty() && array.singles.empty()) : !array.integers.empty()) {
    reader.fail_at(array.place, array.name + (integers ? " holds no integers" : " holds integers"));
  }
  return array;  // NOLINT(bugprone-return-const-ref-from-parameter): of a record, which outlives the reading
}

const Array& float64(const JsonReader& reader, const Array& array) {
  if (!array.singles.empty()) reader.fail_at(array.place, array.name + " holds float32, expected float64");
  return array;  // NOLINT(bugprone-return-const-ref-from-parameter): likewise
}

/// Numbers of components or ranks summed up, from 0; of any count where that is below 0.
const std::vector<Index>& offsets_of(const JsonReader& reader, const Array& array, Index count) {
  const std::vector<Index>& offsets = of_shape(reader, array, {count < 0 ? -1 : count + 1}, true).integers;
  if (offsets.empty() || offsets.front() != 0 || !std::is_sorted(offsets.begin(), offsets.end())) {
    reader.fail_at(array.place, array.name + " does not ascend from 0");
  }
  return offsets;
}

/// Views of what a record holds, which must outlive them.
std::shared_ptr<const Covariances> covariances_of(const JsonReader& reader, Record& record, Index n, Index d) {
  const std::string kind = record.text("kind");
  const bool squared = record.number("squared") != 0.0;
  const auto values = [&](const std::vector<Index>& shape) -> const Array& {
    return of_shape(reader, record.array(reader, "values"), shape);
  };
  if (kind == "zero") return no_covariances(n, d);
  if (kind == "isotropic") return isotropic_covariances(values({n}).view(n, 1, squared), d);
  if (kind == "diagonal") return diagonal_covariances(values({n, d}).view(n, d, squared));
  if (kind == "full") return full_covariances(values({n, d, d}).view(n * d, d), n);
  if (kind != "low_rank") record.fail(reader, "there is no kind of covariances \"" + kind + '"');
  ArrayView diagonal;
  if (record.arrays.count("diagonal_values") != 0) {
    diagonal = of_shape(reader, record.array(reader, "diagonal_values"), {n, d}).view(n, d);
  }
  if (record.arrays.count("offsets") == 0) {
    const Array& factors = values({n, d, -1});
    return low_rank_covariances(factors.view(n * d, factors.shape[2]), nullptr, n, d, diagonal);
  }
  const std::vector<Index>& offsets = offsets_of(reader, record.array(reader, "offsets"), n);
  const Array& factors = values({-1});
  if (factors.shape[0] % d != 0 || factors.shape[0] / d != offsets.back()) {
    reader.fail_at(factors.place, factors.name + " has " + std::to_string(factors.shape[0]) +
                                      " numbers, the ranks sum to " + std::to_string(offsets.back()));
  }
  return low_rank_covariances(factors.view(1, factors.shape[0]), offsets.data(), n, d, diagonal);
}

/// Support examples and the memory that they view: Gaussians or mixtures of a record, or points.
struct Support {
  std::unique_ptr<Record> record;
  Array points;
  std::vector<double> weights;
  std::optional<Mixtures> examples;
};

Gaussians checked(const JsonReader& reader, const Array& mean, Record* covariances) {
  of_shape(reader, mean, {-1, -1});
  const Index n = mean.shape[0];
  const Index d = mean.shape[1];
  if (d < 1) reader.fail_at(mean.place, mean.name + " has no columns");
  Gaussians out(mean.view(n, d),
                covariances == nullptr ? no_covariances(n, d) : covariances_of(reader, *covariances, n, d));
  out.check_once(alone());
  return out;
}

Gaussians checked(const JsonReader& reader, Record& record) {
  return checked(reader, record.array(reader, "mean"), &record.at(reader, "covariances"));
}

Mixtures examples_of(const JsonReader& reader, Support& support) {
  if (!support.record) return checked(reader, support.points, nullptr);
  Record& record = *support.record;
  if (record.within.count("components") == 0) return checked(reader, record);
  const Gaussians components = checked(reader, record.at(reader, "components"));
  const Array& weights = of_shape(reader, record.array(reader, "weights"), {components.n_samples()});
  support.weights = weights.numbers;
  if (weights.numbers.empty()) support.weights.assign(weights.singles.begin(), weights.singles.end());
  const std::vector<Index>& offsets = offsets_of(reader, record.array(reader, "offsets"), -1);
  return {components, offsets.data(), static_cast<Index>(offsets.size()) - 1, support.weights.data()};
}

ExpectedKernel kernel_of(const JsonReader& reader, Record& record, double& tau) {
  constexpr std::pair<const char*, KernelKind> kinds[] = {{"rbf", KernelKind::rbf},
                                                          {"laplacian", KernelKind::laplacian},
                                                          {"poly", KernelKind::polynomial},
                                                          {"linear", KernelKind::linear}};
  const std::string name = record.text("kind");
  const auto* kind =
      std::find_if(std::begin(kinds), std::end(kinds), [&](const auto& each) { return name == each.first; });
  if (name == "precomputed") record.fail(reader, "is precomputed: such a machine takes no features");
  if (kind == std::end(kinds)) record.fail(reader, "there is no kernel \"" + name + '"');
  const Array& gamma = float64(reader, of_shape(reader, record.array(reader, "gamma"), {-1}));
  const double degree = record.number("degree", 3.0);
  if (kind->second == KernelKind::polynomial && degree != 1.0 && degree != 2.0 && degree != 3.0) {
    record.fail(reader, "degree is " + check::text(degree) + "; it must be 1, 2 or 3");
  }
  tau = record.number("tau");
  if (record.numbers.count("tau") != 0 && !(tau > 0.0)) {
    record.fail(reader, "tau is " + check::text(tau) + "; it must be positive");
  }
  ExpectedKernel out;
  out.kind = kind->second;
  out.gamma = ConstVectorMap(gamma.numbers.data(), static_cast<Index>(gamma.numbers.size()));
  if (out.kind == KernelKind::polynomial) out.degree = static_cast<int>(degree);
  out.coef0 = record.number("coef0");
  out.normalize = record.number("normalize") != 0.0;
  return out;
}

/// The coefficients in each pair of classes. `SVC` stores of an example of class i its coefficients against each other
/// class, in order; examples are sorted by class.
Matrix pairs_of(const JsonReader& reader, const ConstMatrixRef& stored, const Array& n_support) {
  const Index n_classes = stored.rows() + 1;
  std::vector<Index> ends{0};
  for (const Index count : n_support.integers) {
    const Index left = stored.cols() - ends.back();
    if (count < 0 || count > left) reader.fail_at(n_support.place, "n_support is of other examples than dual_coef");
    ends.push_back(ends.back() + count);
  }
  if (ends.back() != stored.cols()) reader.fail_at(n_support.place, "n_support is of fewer examples than dual_coef");
  if (n_classes == 2) return stored;
  constexpr Index most_numbers = 1 << 28;  // of all pairs, which may be many times those of the file
  if (n_classes * (n_classes - 1) / 2 > most_numbers / std::max<Index>(1, stored.cols())) {
    reader.fail_at(n_support.place,
                   "n_support has " + std::to_string(n_classes) + " classes, whose pairs are too many");
  }
  Matrix out = Matrix::Zero(n_classes * (n_classes - 1) / 2, stored.cols());
  Index pair = 0;
  for (Index i = 0; i < n_classes; ++i) {
    for (Index j = i + 1; j < n_classes; ++j, ++pair) {
      const auto copy = [&](Index of, Index row) {
        const Index begin = ends[static_cast<std::size_t>(of)];
        const Index count = ends[static_cast<std::size_t>(of) + 1] - begin;
        out.row(pair).segment(begin, count) = stored.row(row).segment(begin, count);
      };
      copy(i, j - 1);
      copy(j, i);
    }
  }
  return out;
}

}  // namespace

KernelModel kernel_model(const JsonReader& reader, Record& record) {
  const bool of_pairs = record.text("estimator") == "UncertainKernelSVC";
  const auto n_classes = static_cast<Index>(record.classes.size());
  const std::string fault(n_classes < 2 ? "classes are fewer than two" : fault_of(record.classes));
  if (!fault.empty()) record.fail(reader, fault);
  KernelModel out;
  out.kernel = kernel_of(reader, record.at(reader, "kernel"), out.tau);
  const auto support = std::make_shared<Support>();
  std::string name = "support_vectors";
  std::size_t place = 0;
  if (of_pairs) {
    name = "support_gaussians";
    place = record.at(reader, name).place;
    support->record = std::move(record.within[name]);
  } else {
    support->points = std::move(record.array(reader, name));
    place = support->points.place;
  }
  try {
    support->examples.emplace(examples_of(reader, *support));
    gram_diagonal(out.kernel, *support->examples, alone());  // looks at the kernel, and whether it takes the examples
  } catch (const JsonReader::Error&) {
    throw;
  } catch (const std::invalid_argument& error) {
    reader.fail_at(place, name + ": " + error.what());
  }
  out.support = std::shared_ptr<const Mixtures>(support, &*support->examples);
  const Index n_support = out.support->n_samples();
  const Index n_rows = of_pairs ? n_classes - 1 : (n_classes == 2 ? 1 : n_classes);
  const Array& dual_coef = float64(reader, of_shape(reader, record.array(reader, "dual_coef"), {n_rows, n_support}));
  out.coefficients = ConstMatrixMap(dual_coef.numbers.data(), n_rows, n_support);
  if (of_pairs) {
    const Array& counts = of_shape(reader, record.array(reader, "n_support"), {n_classes}, true);
    out.coefficients = pairs_of(reader, out.coefficients, counts);
  }
  const Index n_scores = of_pairs ? n_classes * (n_classes - 1) / 2 : n_rows;
  const Array& intercept = float64(reader, of_shape(reader, record.array(reader, "intercept"), {n_scores}));
  out.intercept = ConstVectorMap(intercept.numbers.data(), n_scores);
  return out;
}

}  // namespace halosvm::record
