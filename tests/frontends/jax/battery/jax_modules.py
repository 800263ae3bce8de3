"""All cases, models and refusals of the battery: importing it imports every module that registers some."""

import jax_complex
import jax_control_flow
import jax_dtypes
import jax_equinox_models
import jax_gradients
import jax_haiku_models
import jax_lax_elementwise
import jax_lax_structure
import jax_linen_models
import jax_nn_functions
import jax_nnx_models
import jax_np_arithmetic
import jax_np_indexing
import jax_np_linear
import jax_np_manipulation
import jax_np_order
import jax_np_statistics
import jax_random_numbers
import jax_refused
import jax_scipy_signal
import jax_scipy_special
import jax_symbolic
import jax_trees
import jax_vmap_programs
import jax_x64
from jax_cases import CASES, REFUSALS
from jax_models import MODELS

__all__ = ["CASES", "MODELS", "MODULES", "REFUSALS"]

MODULES = (
    jax_lax_elementwise,
    jax_lax_structure,
    jax_np_arithmetic,
    jax_np_manipulation,
    jax_np_indexing,
    jax_np_order,
    jax_np_statistics,
    jax_np_linear,
    jax_complex,
    jax_nn_functions,
    jax_scipy_special,
    jax_scipy_signal,
    jax_random_numbers,
    jax_control_flow,
    jax_gradients,
    jax_vmap_programs,
    jax_dtypes,
    jax_x64,
    jax_symbolic,
    jax_trees,
    jax_refused,
    jax_linen_models,
    jax_nnx_models,
    jax_equinox_models,
    jax_haiku_models,
)
