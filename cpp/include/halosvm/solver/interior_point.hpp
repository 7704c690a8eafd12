/// \file
/// A primal-dual interior-point method for the hinge and the expected hinge, exact for certain, nearly certain and
/// uncertain examples alike.
///
/// Both losses are psi(m, s) = max over 0 <= theta <= 1 of theta m + s phi(q), q = Phi^-1(theta) (spec A.1, conjugate
/// form), so that J* is the saddle point of
///
///     lam/2 |w|^2 + sum_i c_i [ theta_i m_i + s_i phi(q_i) ].
///
/// With multipliers r_i, t_i >= 0 of the bounds on theta_i, Newton's method is applied to
///
///     lam w = sum_i c_i (theta_i y_i x_i - phi(q_i) S_i w / s_i),   sum_i c_i theta_i y_i = 0,
///     t_i - r_i = m_i - s_i q_i,   theta_i r_i = mu,   (1 - theta_i) t_i = mu,
///
/// while mu goes to 0 (Mehrotra's predictor and corrector). Eliminating theta, r and t leaves one positive definite
/// system of order n_features + 1; an iteration costs three passes over the data and the sum of n_samples outer
/// products. The number of iterations (7 to 40) hardly depends on lam, on the scale of the data or on how small the
/// spreads are. Any theta with sum c theta y = 0 bounds J* from below, which certifies the result.
///
/// Covariances F_i F_i' of low rank leave room for w to have F_i'w = 0 for some examples, and there s_i has a kink. For
/// them s_i is a variable of its own and F_i'w has dual variables v_i with |v_i| <= phi(q_i), in the place of
/// phi(q_i) F_i'w / s_i; s_i >= |F_i'w| is a second-order cone (cones.hpp). That takes 10 to 20 iterations in most
/// cases.
#pragma once

#include "halosvm/objective/local_objective.hpp"
#include "halosvm/solver/solver.hpp"

HALOSVM_PUBLIC_BEGIN
namespace halosvm {

/// The largest number of features for which a Hessian is worth its memory and time.
inline constexpr Index interior_point_features = 4000;

/// Minimises each problem in turn. Works in memory of 8 to 9 numbers per example, 11 + 7 r more with factors of
/// rank r, and a few n_features^2.
/// \param start ignored but for its shape: interior points start from the middle.
/// \throws std::invalid_argument when the loss is not one of the two.
Result minimize_interior_point(const Objective& objective, const LinearModel& start, const BatchSettings& settings);

}  // namespace halosvm
HALOSVM_PUBLIC_END
