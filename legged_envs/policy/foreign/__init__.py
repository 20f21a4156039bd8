"""Policies of other frameworks: read with their description, and written in their formats."""

FOREIGN_ENDINGS = (".onnx", ".pt", ".pth", ".jit")
"""Endings of policies of other frameworks: ONNX, and TorchScript or checkpoints of PyTorch."""
