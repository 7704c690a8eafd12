// Trains a classifier on a table of means and standard deviations, saves it, loads it, and predicts. Classifies by
// whatever machine Python has saved.
//
//   consumer train TABLE.csv MODEL.json
//   consumer predict TABLE.csv MODEL.json
//   consumer classify TABLE.csv MODEL.json

#include <halosvm/halosvm.hpp>

#include <cstdint>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <limits>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace {

/// Below a line of names, rows of a label, of all means, and of as many standard deviations.
struct Table {
  explicit Table(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::vector<double> numbers;
    std::size_t width = 0;
    if (!std::getline(file, line)) throw std::runtime_error("cannot read " + path);
    while (std::getline(file, line)) {
      std::istringstream cells(line);
      std::string cell;
      if (!std::getline(cells, cell, ',')) continue;
      labels.push_back(static_cast<int>(std::stod(cell)));
      const std::size_t before = numbers.size();
      while (std::getline(cells, cell, ',')) numbers.push_back(std::stod(cell));
      if (labels.size() == 1) width = numbers.size();
      if (numbers.size() - before != width || width % 2 != 0 || width == 0) {
        throw std::runtime_error(path + " has a row of another length");
      }
    }
    const auto n = static_cast<halosvm::Index>(labels.size());
    const auto d = static_cast<halosvm::Index>(width / 2);
    const halosvm::ConstMatrixMap rows(numbers.data(), n, 2 * d);
    means = rows.leftCols(d);
    stds = rows.rightCols(d);
  }
  std::vector<int> labels;
  halosvm::Matrix means, stds;
};

/// The numbers of a row, to the last bit.
std::string text(const halosvm::Matrix& numbers, std::size_t row) {
  std::ostringstream out;
  out << std::setprecision(std::numeric_limits<double>::max_digits10);
  for (halosvm::Index k = 0; k < numbers.cols(); ++k) out << ' ' << numbers(static_cast<halosvm::Index>(row), k);
  return out.str();
}

void train(const halosvm::Matrix& means, const halosvm::Matrix& stds, const std::vector<int>& labels,
           const std::string& path) {
  halosvm::UncertainSVC svc;
  svc.C = 1.0;
  const halosvm::LinearClassifier model = svc.fit(means, stds, labels);  // stds left out: certain examples
  std::cout << halosvm::message(model.result.status) << ": " << model.result.suboptimality.maxCoeff() << '\n';
  model.save(path);
}

void predict(const halosvm::Matrix& means, const halosvm::Matrix& stds, const std::string& path) {
  const auto model = halosvm::LinearClassifier::load(path);
  const std::vector<std::int64_t> labels = model.predict(means);
  const halosvm::Matrix scores = model.decision_function(means);
  const halosvm::Matrix spreads = model.decision_std(stds);  // their standard deviations
  for (std::size_t i = 0; i < labels.size(); ++i) std::cout << labels[i] << text(scores, i) << text(spreads, i) << '\n';
}

/// Classes, scores, and probabilities where the machine is calibrated.
void classify(const halosvm::Matrix& means, const halosvm::Matrix& stds, const std::string& path) {
  const auto machine = halosvm::Machine::load(path);
  const halosvm::Examples examples = stds.isZero(0.0) ? halosvm::Examples(means) : halosvm::Examples(means, stds);
  const std::vector<halosvm::ClassLabel> labels = machine.predict(examples);
  const halosvm::Matrix scores = machine.decision_function(examples);
  halosvm::Matrix probabilities(means.rows(), 0);
  if (!machine.curves.empty()) probabilities = machine.predict_proba(examples);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    std::visit([](const auto& label) { std::cout << label; }, labels[i]);
    std::cout << text(scores, i) << text(probabilities, i) << '\n';
  }
}

}  // namespace

int main(int argc, char* argv[]) {
  try {
    const std::vector<std::string> words(argv + 1, argv + argc);
    const std::string command = words.size() == 3 ? words[0] : "";
    if (command != "train" && command != "predict" && command != "classify") {
      throw std::runtime_error("usage: consumer train|predict|classify TABLE.csv MODEL.json");
    }
    const Table table(words[1]);
    if (command == "train") train(table.means, table.stds, table.labels, words[2]);
    if (command == "predict") predict(table.means, table.stds, words[2]);
    if (command == "classify") classify(table.means, table.stds, words[2]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
