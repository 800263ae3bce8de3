"""What tables need and ONNX lacks, as functions on tensors that know no nulls."""
