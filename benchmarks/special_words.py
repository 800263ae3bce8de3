"""What docs/measured/special-values.md says around its tables."""

BEGIN = """# Special values

What the standard defines, the generated code computes, for every number: the text of an operator, the formula or the
function that it gives, and the arithmetic of IEEE 754. That holds for infinities, for the largest numbers, for a batch
of nothing. The tests of each family of operators compare it with numpy and with ONNX's reference implementation.

The standard is silent on much else. There runtimes differ, and ONNX Runtime differs from itself: what its kernels do
with NaN depends on the place in a vector register and on the processor. This page lists what the standard says, and
what each runtime does. Where the standard is silent, generated code calls the framework's own function.

`onward verify --hard` feeds a model NaN, infinities, subnormal numbers and an empty batch, and says where two models
differ. The tables are made by `benchmarks/special_values.py`."""

SECTIONS = {
    "order": (
        "NaN among numbers",
        "The standard says 'maximum', and does not say whether NaN is one. numpy and PyTorch take NaN for the largest "
        "and for the smallest of all. ONNX Runtime takes it for neither, unless it comes first, or stands where a "
        "vector kernel begins.",
    ),
    "kernels": (
        "Kernels that differ from the standard's formula",
        "Here the standard's formula has a value, and a framework's own kernel gives another. The kernel is kept, "
        "since ordinary models are faster with it. PyTorch's Gelu overflows beyond half the largest number, in full "
        "vectors only. TensorFlow's threads take subnormal numbers (below 1.2e-38 in float32) for zero, and it has no "
        "setting for that. Its Softmax of a row with NaN has NaN in one place only, and its MaxPool gives the smallest "
        "finite number instead of -∞.",
    ),
    "integers": (
        "Integers",
        "Integers wrap around where they overflow, as in numpy. The standard leaves undefined what a float becomes "
        "that the integers do not have.",
    ),
    "empty": (
        "Empty tensors",
        "A batch of nothing gives a result with no elements, of the right shape. The exception is a convolution in "
        "TensorFlow on x86, whose oneDNN kernels leave the shape of the input; with `TF_ENABLE_ONEDNN_OPTS=0` in the "
        "environment it is right. Frameworks refuse some tensors that have no channels, no time steps, or nothing "
        "to choose from.",
    ),
}
