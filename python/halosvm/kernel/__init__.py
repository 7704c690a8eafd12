"""Kernel machines: Gaussians come in, Gram matrices and their machines go out.

expected_kernel                    `ExpectedKernel`: a kernel and its parameters, checked
gram, level2, training_gram        matrices of kernels, and those of training examples
expansions                         decision values of kernel machines, and their spread
dual                               the solver of their duals, bounded in time
kernel_svc, isotropic_kernel_svc   `UncertainKernelSVC` and `IsotropicKernelSVC`
"""
