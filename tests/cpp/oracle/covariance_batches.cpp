// The batches of every covariance kind, compiled once for float64 and float32.

#include "oracle/covariance_batches.hpp"

#include "oracle/dense_algebra.hpp"

#include <algorithm>

namespace oracle {

template <class T>
Batch BatchMaker<T>::zero() {
  Batch batch = begin("zero");
  batch.covariances = std::make_shared<halosvm::ZeroCovariances>(n_, d_);
  return batch;
}

template <class T>
Batch BatchMaker<T>::isotropic(bool squared) {
  Batch batch = begin(squared ? "isotropic std" : "isotropic variance");
  const std::vector<T> t = variances(n_, 1);
  for (Index i = 0; i < n_; ++i) batch.dense[at(i)] = read(t[at(i)], squared) * Matrix::Identity(d_, d_);
  batch.covariances = std::make_shared<halosvm::IsotropicCovariances>(ArrayView(batch.keep(t), n_, 1, squared), d_);
  return batch;
}

template <class T>
Batch BatchMaker<T>::diagonal(bool squared) {
  Batch batch = begin(squared ? "diagonal std" : "diagonal variance");
  batch.covariances = std::make_shared<halosvm::DiagonalCovariances>(add_diagonal(batch, squared));
  return batch;
}

template <class T>
Batch BatchMaker<T>::full() {
  Batch batch = begin("full");
  std::vector<T> numbers(at(n_ * d_ * d_));
  for (Index i = 1; i < n_; ++i) {
    const Matrix F = random_.normal_matrix(d_, std::max<Index>(1, d_ - 1));  // singular, as they often are
    const Matrix S = product(F, F.transpose());
    for (Index j = 0; j < d_; ++j) {
      for (Index k = 0; k <= j; ++k) {
        numbers[at((i * d_ + j) * d_ + k)] = numbers[at((i * d_ + k) * d_ + j)] = static_cast<T>(S(j, k));
      }
    }
    for (Index j = 0; j < d_ * d_; ++j) {
      batch.dense[at(i)](j / d_, j % d_) = static_cast<double>(numbers[at(i * d_ * d_ + j)]);
    }
  }
  batch.covariances =
      std::make_shared<halosvm::FullCovariances>(ArrayView(batch.keep(std::move(numbers)), n_ * d_, d_), n_);
  return batch;
}

template <class T>
Batch BatchMaker<T>::sparse_diagonal(bool squared) {
  Batch batch = begin(squared ? "sparse std" : "sparse variance");
  std::vector<T> values;
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> offsets{0};
  for (Index i = 0; i < n_; ++i) {
    for (Index j = i % 2; j < d_ && i > 0; j += 2) {
      values.push_back(static_cast<T>(random_.uniform(0.1, 2.0)));
      columns.push_back(static_cast<std::int32_t>(j));
      batch.dense[at(i)](j, j) = read(values.back(), squared);
    }
    offsets.push_back(static_cast<std::int64_t>(values.size()));
  }
  const halosvm::SparseView view(batch.keep(std::move(values)), batch.keep(std::move(columns)),
                                 batch.keep(std::move(offsets)), n_, d_, squared);
  batch.covariances = std::make_shared<halosvm::SparseDiagonalCovariances>(view);
  return batch;
}

template <class T>
Batch BatchMaker<T>::in_columns(Batch inner, std::vector<Index> columns) {
  Batch batch = begin(inner.name + " in columns");
  batch.storage = inner.storage;
  for (Index i = 0; i < n_; ++i) {
    for (std::size_t j = 0; j < columns.size(); ++j) {
      for (std::size_t k = 0; k < columns.size(); ++k) {
        batch.dense[at(i)](columns[j], columns[k]) = inner.dense[at(i)](static_cast<Index>(j), static_cast<Index>(k));
      }
    }
  }
  batch.covariances = std::make_shared<halosvm::ColumnsCovariances>(inner.covariances, std::move(columns), d_);
  return batch;
}

template <class T>
Batch BatchMaker<T>::low_rank(Index rank, Extra extra) {
  Batch batch = begin("low rank " + std::to_string(rank));
  const std::vector<T> factors = factor_numbers(batch, std::vector<Index>(at(n_), rank));
  const ArrayView diagonal = extra_diagonal(batch, extra);
  batch.covariances =
      std::make_shared<halosvm::LowRankCovariances>(ArrayView(batch.keep(factors), n_ * d_, rank), n_, d_, diagonal);
  return batch;
}

template <class T>
Batch BatchMaker<T>::ragged(Index largest, Extra extra) {
  Batch batch = begin("ragged rank");
  std::vector<Index> ranks;
  std::vector<Index> offsets{0};
  for (Index i = 0; i < n_; ++i) {
    ranks.push_back(i % (largest + 1));
    offsets.push_back(offsets.back() + ranks.back());
  }
  const std::vector<T> factors = factor_numbers(batch, ranks);
  const ArrayView diagonal = extra_diagonal(batch, extra);
  const Index size = offsets.back() * d_;
  batch.covariances = std::make_shared<halosvm::LowRankCovariances>(ArrayView(batch.keep(factors), 1, size),
                                                                    batch.keep(std::move(offsets)), n_, d_, diagonal);
  return batch;
}

template <class T>
void BatchMaker<T>::add_all(std::vector<Batch>& out) {
  out.push_back(zero());
  for (const bool squared : {false, true}) {
    out.push_back(isotropic(squared));
    out.push_back(diagonal(squared));
  }
  for (const Extra extra : {Extra::none, Extra::variances, Extra::stds}) {
    out.push_back(low_rank(0, extra));
    out.push_back(low_rank(2, extra));
    out.push_back(ragged(3, extra));
  }
  out.push_back(full());
  for (const bool squared : {false, true}) out.push_back(sparse_diagonal(squared));
  std::vector<Index> columns;  // every other one, from the last to the first
  for (Index j = d_ - 1; j >= 0; j -= 2) columns.push_back(j);
  BatchMaker few(n_, static_cast<Index>(columns.size()), 7);
  out.push_back(in_columns(few.diagonal(true), columns));
  out.push_back(in_columns(few.ragged(3, Extra::variances), columns));
  out.push_back(in_columns(few.low_rank(2, Extra::none), columns));
  out.push_back(in_columns(few.full(), columns));
}

template <class T>
double BatchMaker<T>::read(T x, bool squared) {
  const auto value = static_cast<double>(x);
  return squared ? value * value : value;
}

template <class T>
Batch BatchMaker<T>::begin(const std::string& name) {
  Batch batch;
  batch.name = name + (sizeof(T) == sizeof(float) ? ", float32" : ", float64");
  batch.dense.assign(at(n_), Matrix::Zero(d_, d_));
  return batch;
}

template <class T>
std::vector<T> BatchMaker<T>::variances(Index rows, Index cols) {
  std::vector<T> out(at(rows * cols));
  for (Index i = cols; i < rows * cols; ++i) out[at(i)] = static_cast<T>(random_.uniform(0.1, 2.0));
  return out;
}

template <class T>
ArrayView BatchMaker<T>::add_diagonal(Batch& batch, bool squared) {
  const std::vector<T> numbers = variances(n_, d_);
  for (Index i = 0; i < n_ * d_; ++i) batch.dense[at(i / d_)](i % d_, i % d_) += read(numbers[at(i)], squared);
  return {batch.keep(numbers), n_, d_, squared};
}

template <class T>
ArrayView BatchMaker<T>::extra_diagonal(Batch& batch, Extra extra) {
  if (extra == Extra::none) return {};
  batch.name += extra == Extra::stds ? " + diagonal std" : " + diagonal variance";
  return add_diagonal(batch, extra == Extra::stds);
}

template <class T>
std::vector<T> BatchMaker<T>::factor_numbers(Batch& batch, const std::vector<Index>& ranks) {
  std::vector<T> out;
  for (Index i = 0; i < n_; ++i) {
    Matrix F(d_, ranks[at(i)]);
    for (Index j = 0; j < F.size(); ++j) {
      const T number = i == 0 ? T{0} : static_cast<T>(random_.normal());
      out.push_back(number);
      F(j / F.cols(), j % F.cols()) = static_cast<double>(number);
    }
    batch.dense[at(i)] += product(F, F.transpose());
  }
  return out;
}

template class BatchMaker<double>;
template class BatchMaker<float>;

std::vector<Batch> all_batches(Index n, Index d, std::uint64_t seed) {
  std::vector<Batch> out;
  BatchMaker<double>(n, d, seed).add_all(out);
  BatchMaker<float>(n, d, seed + 1).add_all(out);
  return out;
}

std::vector<Batch> whole_batches(Index n, Index d, std::uint64_t seed) {
  std::vector<Batch> out;
  for (Batch& batch : all_batches(n, d, seed)) {
    const std::string kind = batch.covariances->kind();
    if (kind != "columns" && kind != "sparse_diagonal") out.push_back(std::move(batch));
  }
  return out;
}

}  // namespace oracle
