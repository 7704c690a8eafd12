// Eigenvalue decompositions: the one place that compiles Eigen's.

#include "linalg/eigen.hpp"

#include <Eigen/Eigenvalues>

namespace halosvm::linalg {

struct SymmetricEigen::Solver {
  Eigen::SelfAdjointEigenSolver<Columns> eigen;
};

SymmetricEigen::SymmetricEigen() : solver_(std::make_unique<Solver>()) {}
SymmetricEigen::~SymmetricEigen() = default;
SymmetricEigen::SymmetricEigen(SymmetricEigen&&) noexcept = default;
SymmetricEigen& SymmetricEigen::operator=(SymmetricEigen&&) noexcept = default;

void SymmetricEigen::compute(const ConstColumnsRef& A) { solver_->eigen.compute(A); }

void SymmetricEigen::compute_values(const ConstColumnsRef& A) { solver_->eigen.compute(A, Eigen::EigenvaluesOnly); }

void SymmetricEigen::compute_values(const Vector& diagonal, const Vector& subdiagonal) {
  solver_->eigen.computeFromTridiagonal(diagonal, subdiagonal, Eigen::EigenvaluesOnly);
}

const Vector& SymmetricEigen::values() const { return solver_->eigen.eigenvalues(); }

const Columns& SymmetricEigen::vectors() const { return solver_->eigen.eigenvectors(); }

struct Tridiagonal::Decomposition {
  Eigen::Tridiagonalization<Columns> eigen{2};
};

Tridiagonal::Tridiagonal() : decomposition_(std::make_unique<Decomposition>()) {}
Tridiagonal::~Tridiagonal() = default;
Tridiagonal::Tridiagonal(Tridiagonal&&) noexcept = default;
Tridiagonal& Tridiagonal::operator=(Tridiagonal&&) noexcept = default;

void Tridiagonal::compute(const Columns& A) { decomposition_->eigen.compute(A); }

Vector Tridiagonal::diagonal() const { return decomposition_->eigen.diagonal(); }

Vector Tridiagonal::subdiagonal() const { return decomposition_->eigen.subDiagonal(); }

void Tridiagonal::apply_q(Columns& X) const { X.applyOnTheLeft(decomposition_->eigen.matrixQ()); }

}  // namespace halosvm::linalg
