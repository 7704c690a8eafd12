// Usage: consumer [FILE]. Reads Gaussians, one a line as `label mean1 mean2 std1 std2` with the label 1 or 0, fits a
// linear classifier by stochastic gradient descent, and prints the model and how the fit ended.

#include <halosvm/halosvm.hpp>

#include <cstdint>
#include <exception>
#include <fstream>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr halosvm::Index n_features = 2;

struct Examples {
  std::vector<std::int16_t> labels;
  std::vector<double> means;
  std::vector<double> stds;
};

Examples read(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  Examples examples;
  std::int16_t label = 0;
  double mean[n_features];
  double std[n_features];
  while (file >> label >> mean[0] >> mean[1] >> std[0] >> std[1]) {
    examples.labels.push_back(label);
    examples.means.insert(examples.means.end(), std::begin(mean), std::end(mean));
    examples.stds.insert(examples.stds.end(), std::begin(std), std::end(std));
  }
  return examples;
}

void fit_and_print(const Examples& examples) {
  const auto n = static_cast<halosvm::Index>(examples.labels.size());
  const bool are_stds = true;  // the table reads them as variances
  const auto covariances =
      std::make_shared<halosvm::DiagonalCovariances>(halosvm::ArrayView(examples.stds.data(), n, n_features, are_stds));
  const halosvm::Gaussians data(halosvm::ArrayView(examples.means.data(), n, n_features), covariances);
  data.check("means", {});
  covariances->check("stds", {});

  const halosvm::LocalObjective objective(data, {examples.labels.data(), 1}, nullptr, 0.05,
                                          halosvm::make_loss("expected_hinge"), true, {});
  halosvm::SgdSettings settings;
  settings.batch_size = 4;
  settings.max_epochs = 10000;
  const halosvm::Result result = minimize(objective, halosvm::LinearModel(1, n_features), settings);

  halosvm::Matrix spread(n, 1);
  decision_std(result.model, *covariances, spread, {});
  std::cout << "coefficients  " << result.model.coef << "\nintercept     " << result.model.intercept
            << "\nobjective     " << result.objective << "\nepochs        " << result.epochs << "\nspread of f   "
            << spread.minCoeff() << " to " << spread.maxCoeff() << "\nstatus        " << message(result.status) << '\n';
}

}  // namespace

int main(int argc, char* argv[]) {
  try {
    fit_and_print(read(argc > 1 ? argv[1] : DEFAULT_FILE));
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
  return 0;
}
