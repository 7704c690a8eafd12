"""Total support vector machines: bounded errors that may speak for their example.

total_svc     `TotalSVC`
problem       what its kernel machines are fitted to
corrections   the best points within errors
alternation   the kernel machine with a penalty: corrections and machines in turn
span          coordinates of points in the feature space of a kernel
ball          the machine in a ball, and whether its minimum is the global one
"""

from halosvm.linear.total.total_svc import TotalSVC

__all__ = ["TotalSVC"]
