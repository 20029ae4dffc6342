"""Converts the kernel of an estimator to that of a spec, and back."""

from typing import Any

from wolfstream.service.spec.kernel import KernelSpec, PolynomialSpec, RbfSpec
from wolfstream.solver.kernels.functions import Kernel


def plain_kernel(kernel: Kernel) -> dict[str, Any]:
    """Return a kernel in the form of a spec, with gamma as a number."""
    plain: dict[str, Any] = {"type": kernel.type}
    if kernel.type != "linear":
        plain["gamma"] = float(kernel.gamma)
    if kernel.type == "polynomial":
        plain |= {"degree": int(kernel.degree), "coef0": float(kernel.coef0)}
    return plain


def kernel_parameters(spec: KernelSpec, kernel: Kernel) -> dict[str, Any]:
    """Return the parameters of an estimator for a kernel.

    Args:
        spec: the kernel in the model's spec.
        kernel: the same kernel, with the gamma that the model has chosen.
    """
    parameters: dict[str, Any] = {"kernel": spec.type}
    if isinstance(spec, RbfSpec | PolynomialSpec):
        parameters["gamma"] = kernel.gamma
    if isinstance(spec, PolynomialSpec):
        parameters |= {"degree": spec.degree, "coef0": spec.coef0}
    return parameters
