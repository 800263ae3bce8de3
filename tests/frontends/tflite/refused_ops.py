"""Builtin ops of the schema that are refused, and why."""

NO_KERNEL = "the interpreter has no kernel for it, and the converter was not seen to write it"
REFUSED = {
    "LSH_PROJECTION": "hashes of the bytes of floats, which ONNX has no op for",
    "SKIP_GRAM": "words of a text in as many combinations as it has",
    "STABLEHLO_RNG_BIT_GENERATOR": "the bits of one generator of random numbers",
    "CUSTOM": "no op of its own: what is known of custom ones has rules by name",
    "STABLEHLO_WHILE": "the converter writes it without what its body takes from around it",
    "CALL": NO_KERNEL,
    "CONCAT_EMBEDDINGS": NO_KERNEL,
    "DELEGATE": NO_KERNEL,
    "PLACEHOLDER_FOR_GREATER_OP_CODES": NO_KERNEL,
} | {
    f"STABLEHLO_{name}": NO_KERNEL
    for name in (
        "CBRT",
        "CUSTOM_CALL",
        "DYNAMIC_UPDATE_SLICE",
        "IOTA",
        "SORT",
    )
}
