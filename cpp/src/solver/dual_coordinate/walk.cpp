// Coordinate ascent in the dual variables of one problem: epochs go in, dual variables come out.

#include "solver/dual_coordinate/walk.hpp"

#include "halosvm/solver/sgd.hpp"
#include "solver/dual_coordinate/face.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>

namespace halosvm {
namespace {

// Limits of the pull over the mean of |x|^2, and where it begins: much of it couples all variables, little of it needs
// many proximal points. Conjugate gradients do not mind the coupling, and with little would go far off sum u y = 0.
constexpr double least_pull = 0.03;
constexpr double first_pull = 0.1;
constexpr double most_pull = 10.0;
constexpr double pull_on_face = 1.0;
constexpr double pull_at_end = 1e6;

/// Steps of conjugate gradients at a time.
constexpr Index face_steps = 60;

/// The least divisor: variables of rows of zeros go to a bound.
constexpr double tiny = 1e-300;

}  // namespace

CoordinateWalk::CoordinateWalk(const LocalObjective& problem, const Vector& squares, Index most)
    : problem_(problem),
      squares_(squares),
      lam_(problem.regularisation()),
      end_(problem.loss()->traits().certain.end),
      bend_(problem.loss()->traits().certain.bend),
      box_(end_ / lam_),
      intercept_is_free_(problem.fit_intercept()),
      most_(static_cast<double>(most)),
      u_(Vector::Zero(squares.size())),
      w_(Vector::Zero(problem.n_features())),
      scratch_(problem.n_features()) {
  const Rows rows = problem.rows(0, problem.n_samples());
  double sum = 0.0;
  for (Index i = 0; i < rows.count; ++i) {
    if (!(problem.weight(rows[i]) > 0.0)) continue;
    all_.push_back(rows[i]);
    sum += squares(rows[i]);
  }
  order_ = all_;
  const double mean = sum / static_cast<double>(all_.size());
  unit_ = mean > 0.0 ? mean : 1.0;
  if (!intercept_is_free_) return;
  pull_ = first_pull * unit_;
  centre_ = problem.exact_intercept(Matrix::Zero(1, w_.size()), Vector::Zero(1))(0);
  intercept_ = centre_;
}

void CoordinateWalk::take_all() {
  order_ = all_;
  low_ = -infinity;
  high_ = infinity;
  best_ = infinity;  // that of a few examples may have been far too small
  ahead_ = epoch_;
}

void CoordinateWalk::run(double enough, double passes, Checkpoint& checkpoint) {
  const auto has_time = [&] {
    return rows_read_ + static_cast<double>(order_.size()) <= most_ * static_cast<double>(all_.size());
  };
  if (order_.empty()) take_all();
  bool due = true;  // whatever was known before, there is an epoch
  while (due && has_time()) {
    epoch(checkpoint);
    move_on();
    if (is_slow()) solve_face(pull_on_face, checkpoint);
    due = estimate_ > enough && this->passes() < passes && !exhausted() && !order_.empty();
  }
}

void CoordinateWalk::shuffle() {
  constexpr std::uint64_t seed = 0;
  const auto size = static_cast<Index>(order_.size());
  for (Index i = 0; i + 1 < size; ++i) {
    std::swap(order_[static_cast<std::size_t>(i)],
              order_[static_cast<std::size_t>(i + sgd_row(seed, draw_++, size - i))]);
  }
}

void CoordinateWalk::epoch(Checkpoint& checkpoint) {
  constexpr Index block = 1024;
  constexpr Index ahead = 8;
  const bool whole = order_.size() == all_.size();
  shuffle();
  const auto size = static_cast<Index>(order_.size());
  lowest_ = 0.0;
  highest_ = 0.0;
  gap_ = 0.0;
  deviation_ = 0.0;
  Index* const order = order_.data();
  Index kept = 0;
  const auto prefetch = [&]([[maybe_unused]] Index place) {
#if defined(__GNUC__)
    if (place >= size) return;
    __builtin_prefetch(u_.data() + order[place], 1);
    __builtin_prefetch(squares_.data() + order[place]);
#endif
  };
  for (Index begin = 0; begin < size; begin += block) {
    checkpoint();
    const Rows rows{0, std::min(block, size - begin), order + begin};
    problem_.data().means().descend(
        rows, w_,
        [&](Index i, double score) {
          const Index row = rows[i];
          prefetch(begin + i + ahead);
          const double change = step(row, score);
          if (!rests_) order[kept++] = row;  // never beyond the row that is read
          return change;
        },
        scratch_.data());
  }
  if (whole) miss_ = deviation_ / static_cast<double>(size);
  order_.resize(static_cast<std::size_t>(kept));
  rows_read_ += static_cast<double>(size);
  ++epoch_;
}

/// Gives u_i its best value; returns by how much its row is to be added to w.
double CoordinateWalk::step(Index row, double score) {
  const double y = sign(row);
  const double C = upper(row);
  const double h = bend(row);
  const double before = u_(row);
  const double m = problem_.offset(row) - y * (score + intercept_);
  const double best = m > 0.0 ? std::min(C, m / h) : 0.0;  // the dual variable that the loss has at m
  gap_ += (best - before) * m - 0.5 * h * (best * best - before * before);
  deviation_ += std::abs(m);

  const double slope = h * before - m;
  rests_ = (before == 0.0 && slope > high_) || (before == C && slope < low_);
  if (rests_ || (before == 0.0 && slope >= 0.0) || (before == C && slope <= 0.0)) return 0.0;
  lowest_ = std::min(lowest_, slope);
  highest_ = std::max(highest_, slope);
  const double curvature = squares_(row) + h;
  const double after = std::clamp(before - slope / std::max(curvature + pull_, tiny), 0.0, C);
  const double change = after - before;
  u_(row) = after;
  dual_ += change * (y * intercept_ - slope - 0.5 * change * curvature);
  excess_ += y * change;
  if (intercept_is_free_) intercept_ = centre_ + pull_ * excess_;
  return y * change;
}

/// Makes the present intercept the proximal point.
void CoordinateWalk::pull_by(double pull) {
  if (!intercept_is_free_) return;
  pull_ = pull;
  centre_ = intercept_;
  intercept_ = centre_ + pull_ * excess_;
}

/// Moves the proximal point on, and sees how the epoch went.
void CoordinateWalk::move_on() {
  constexpr double clearly = 0.9;
  high_ = highest_ > 0.0 ? highest_ : infinity;
  low_ = lowest_ < 0.0 ? lowest_ : -infinity;
  double gap = gap_;
  if (intercept_is_free_) {
    const double infeasible = std::abs(excess_) * miss_;
    gap += infeasible;
    double pull = pull_;
    if (infeasible > gap_) pull = std::min(1.5 * pull, most_pull * unit_);
    if (infeasible < 0.1 * gap_) pull = std::max(pull / 1.5, least_pull * unit_);
    pull_by(pull);
  }
  estimate_ = dual_ > 0.0 ? gap / dual_ : infinity;
  if (estimate_ < clearly * best_) {
    best_ = estimate_;
    ahead_ = epoch_;
  }
}

/// Whether epochs close the gap by less than a seventh in ten, and had their turn since the last work on the face.
bool CoordinateWalk::is_slow() {
  constexpr Index few = 10;
  constexpr double little = 0.85;
  if (epoch_ % few != 0) return false;
  const bool slow = estimate_ > little * checked_ && epoch_ - solved_ >= 2 * few;
  checked_ = estimate_;
  if (slow) solved_ = epoch_;
  return slow;
}

bool CoordinateWalk::can_finish() const {
  const auto free = std::count_if(all_.begin(), all_.end(), [this](Index row) { return is_free(row); });
  return free > 0 && free <= face_steps;
}

void CoordinateWalk::finish(Checkpoint& checkpoint) {
  take_all();
  solve_face(pull_at_end, checkpoint);
}

void CoordinateWalk::solve_face(double strength, Checkpoint& checkpoint) {
  const bool at_end = strength == pull_at_end;
  const double enough = at_end ? 1e-14 : 1e-2;
  constexpr double nearby = 1e-3;
  constexpr int tries = 8;
  std::vector<Index> rows;
  std::copy_if(order_.begin(), order_.end(), std::back_inserter(rows), [this](Index row) { return is_free(row); });
  if (rows.empty()) return;
  // Two reads for each step of the gradients, and one for each try and for the residual.
  const double left = (most_ - passes()) * static_cast<double>(all_.size()) / static_cast<double>(rows.size());
  const auto allowed = static_cast<Index>(std::min(0.5 * (left - tries - 1), static_cast<double>(face_steps)));
  if (allowed < 1) return;
  std::sort(rows.begin(), rows.end());  // as they lie in memory
  const double pull = pull_;
  pull_by(strength * unit_);
  // More rows than features leave the dual of a kinked loss flat: a proximal term keeps the direction short.
  const bool flat = !at_end && bend_ == 0.0 && static_cast<Index>(rows.size()) > problem_.n_features();
  const double damping = flat ? nearby * unit_ : 0.0;
  const auto size = static_cast<Index>(rows.size());
  Vector signs(size);
  Vector bends(size);
  Vector diagonal(size);
  Vector here(size);
  for (Index i = 0; i < size; ++i) {
    const Index row = rows[static_cast<std::size_t>(i)];
    signs(i) = sign(row);
    bends(i) = bend(row);
    diagonal(i) = std::max(squares_(row) + bends(i) + damping + pull_, tiny);
    here(i) = u_(row);
  }
  const Face face(problem_, rows, signs, bends.array() + damping, diagonal, pull_);
  Vector residual(size);
  face.scores(w_, residual);
  for (Index i = 0; i < size; ++i) {
    const double m = problem_.offset(rows[static_cast<std::size_t>(i)]) - residual(i) - signs(i) * intercept_;
    residual(i) = m - bends(i) * here(i);
  }
  Vector change(w_.size());
  const Vector p = face.solve(residual, allowed, enough, change, checkpoint);

  // Beyond the face's edges the direction may lead up; to the first of them it leads down.
  double edge = 1.0;
  for (Index j = 0; j < size; ++j) {
    const double end = p(j) > 0.0 ? upper(rows[static_cast<std::size_t>(j)]) : 0.0;
    if (p(j) != 0.0) edge = std::min(edge, (end - here(j)) / p(j));
  }
  Vector there(size);
  double t = 1.0;
  for (int i = 0; i < tries; ++i) {
    t = i + 1 == tries ? edge : std::max(edge, i == 0 ? 1.0 : 0.5 * t);
    checkpoint();
    for (Index j = 0; j < size; ++j) {
      there(j) = std::clamp(here(j) + t * p(j), 0.0, upper(rows[static_cast<std::size_t>(j)])) - here(j);
    }
    change.setZero();
    face.add(there, change);
    const double excess = there.dot(signs);
    const double along = residual.dot(there);
    const double bent = change.squaredNorm() + there.cwiseAbs2().dot(bends);
    if (!(along > 0.5 * (bent + pull_ * excess * excess))) continue;
    for (Index j = 0; j < size; ++j) u_(rows[static_cast<std::size_t>(j)]) = here(j) + there(j);
    w_ += change;
    dual_ += along + intercept_ * excess - 0.5 * bent;
    excess_ += excess;
    if (intercept_is_free_) intercept_ = centre_ + pull_ * excess_;
    break;
  }
  pull_by(pull);
  rows_read_ += face.rows_read();
}

void CoordinateWalk::make_feasible(VectorRef v) const {
  v = u_;
  if (!intercept_is_free_) return;
  double excess = 0.0;
  for (const Index row : all_) excess += sign(row) * u_(row);
  const double heavier = excess > 0.0 ? 1.0 : -1.0;
  // What a variable between its bounds can give without leaving them, or becoming another number altogether.
  const auto room = [&](Index row) {
    if (!is_free(row)) return 0.0;
    return sign(row) == heavier ? u_(row) : std::min(u_(row), upper(row) - u_(row));
  };
  double all = 0.0;
  for (const Index row : all_) all += room(row);
  const double share = all > 0.0 ? std::min(1.0, std::abs(excess) / all) : 0.0;
  double weight = 0.0;
  for (const Index row : all_) {
    v(row) -= share * heavier * sign(row) * room(row);
    if (sign(row) == heavier) weight += v(row);
  }
  const double rest = std::abs(excess) - share * all;
  if (!(rest > 0.0) || !(weight > 0.0)) return;
  const double factor = std::max(0.0, 1.0 - rest / weight);
  for (const Index row : all_) {
    if (sign(row) == heavier) v(row) *= factor;
  }
}

}  // namespace halosvm
