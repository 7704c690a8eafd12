// Trains a classifier on a table of means and standard deviations, saves it, loads it, and predicts.
//
//   consumer train TABLE.csv MODEL.json
//   consumer predict TABLE.csv MODEL.json

#include <halosvm/halosvm.hpp>

#include <cstdint>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// Below a line of names, rows of a label, 1 or 0, of all means, and of as many standard deviations.
struct Table {
  explicit Table(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    if (!std::getline(file, line)) throw std::runtime_error("cannot read " + path);
    while (std::getline(file, line)) {
      std::istringstream cells(line);
      std::vector<double> row;
      for (std::string cell; std::getline(cells, cell, ',');) row.push_back(std::stod(cell));
      const auto middle = row.begin() + 1 + static_cast<std::ptrdiff_t>(row.size() / 2);
      labels.push_back(static_cast<std::int16_t>(row.at(0)));
      means.insert(means.end(), row.begin() + 1, middle);
      stds.insert(stds.end(), middle, row.end());
    }
    const auto n = static_cast<halosvm::Index>(labels.size());
    if (n == 0 || means.size() != stds.size() || means.size() % labels.size() != 0) {
      throw std::runtime_error(path + " has no rows, or rows of different lengths");
    }
    const auto d = static_cast<halosvm::Index>(means.size() / labels.size());
    mean = halosvm::ArrayView(means.data(), n, d);
    const halosvm::ArrayView variance(stds.data(), n, d, true);  // true: they are the squares of what is stored
    covariances = std::make_shared<halosvm::DiagonalCovariances>(variance);
    halosvm::Gaussians(mean, covariances).check("means", {});
    covariances->check("stds", {});
  }
  std::vector<std::int16_t> labels;
  std::vector<double> means, stds;
  halosvm::ArrayView mean;
  std::shared_ptr<const halosvm::Covariances> covariances;
};

void train(const Table& table, const std::string& model_path) {
  const double C = 1.0;
  const double lam = 1.0 / (C * static_cast<double>(table.labels.size()));
  const halosvm::LocalObjective objective({table.mean, table.covariances}, {table.labels.data(), 1}, nullptr, lam,
                                          halosvm::make_loss("expected_hinge"), true, {});
  const halosvm::Result result =
      halosvm::minimize(objective, halosvm::LinearModel(1, table.mean.cols()), halosvm::BatchSettings());
  std::cout << "objective " << result.objective << ": " << halosvm::message(result.status) << '\n';

  halosvm::SavedModel saved;
  saved.model = result.model;
  saved.classes = {std::int64_t{0}, std::int64_t{1}};
  halosvm::save_model(saved, model_path);
}

void predict(const Table& table, const std::string& model_path) {
  const halosvm::LinearModel model = halosvm::load_model(model_path).model;
  halosvm::Matrix score(table.mean.rows(), model.coef.rows());
  halosvm::Matrix spread = score;
  halosvm::decision_function(model, table.mean, score, {});
  halosvm::decision_std(model, *table.covariances, spread, {});
  std::cout << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (halosvm::Index i = 0; i < score.rows(); ++i) {
    for (halosvm::Index k = 0; k < score.cols(); ++k) {
      std::cout << score(i, k) << ' ' << spread(i, k) << (k + 1 < score.cols() ? ' ' : '\n');
    }
  }
}

}  // namespace

int main(int argc, char* argv[]) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    if (words.size() != 3 || (words[0] != "train" && words[0] != "predict")) {
      throw std::runtime_error("usage: consumer train|predict TABLE.csv MODEL.json");
    }
    (words[0] == "train" ? train : predict)(Table(words[1]), words[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
