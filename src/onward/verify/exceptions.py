"""Cases of ONNX's suite that no backend can pass as they are written, each with its reason.

An unexpected pass is an error too: the table says what is true today.
"""

RANDOM = "the expected output is one random draw; its statistics are tested instead"

EXCEPTIONS: dict[str, dict[str, str]] = {
    "torch": {
        "test_bernoulli": RANDOM,
        "test_bernoulli_double": RANDOM,
        "test_bernoulli_double_expanded": RANDOM,
        "test_bernoulli_expanded": RANDOM,
        "test_bernoulli_seed": RANDOM,
        "test_bernoulli_seed_expanded": RANDOM,
    },
}
