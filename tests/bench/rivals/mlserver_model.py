"""Dot products by MLServer: a runtime of its own, in parallel workers.

JSON tensors are read by its NumpyCodec. Its REST side does not speak the protocol's extension for
binary tensors; what it documents for bytes in a request is its Base64Codec, and that is used here
for raw elements.
"""

import numpy as np
from mlserver import MLModel
from mlserver.codecs import Base64Codec, NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


def operand(tensor):
    if tensor.datatype == "BYTES":
        return np.frombuffer(Base64Codec.decode_input(tensor)[0], dtype=np.float32)
    return NumpyCodec.decode_input(tensor)


class Dot(MLModel):
    async def load(self) -> bool:
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        a, b = (operand(tensor) for tensor in payload.inputs)
        result = np.array([np.dot(a, b)], dtype=np.float64)
        return InferenceResponse(
            model_name=self.name, outputs=[NumpyCodec.encode_output("result", result)]
        )
