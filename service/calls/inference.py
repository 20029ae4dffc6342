"""Bodies of the Open Inference Protocol."""

from typing import Annotated, Any, Literal, NotRequired, TypeAlias

from pydantic import Field

from wolfstream.service.calls.values import Body, Count, MinSequence, ModelName

OutputName: TypeAlias = Literal["prediction", "decision"]
Float: TypeAlias = Literal["FP64", "FP32", "FP16"]
Integer: TypeAlias = Literal["INT64", "INT32", "INT16", "INT8"]
Unsigned: TypeAlias = Literal["UINT64", "UINT32", "UINT16", "UINT8"]
Datatype: TypeAlias = Literal[Float, Integer, Unsigned]
_Length: TypeAlias = Annotated[int, Field(ge=1)]


class InferenceServer(Body):
    """The server."""

    name: str
    version: str
    extensions: list[str]


class InferenceLive(Body):
    """Whether the server responds."""

    live: bool


class InferenceReady(Body):
    """Whether the server is ready."""

    ready: bool


class InferenceModelReady(Body):
    """Whether a model can predict."""

    name: ModelName
    ready: bool


class TensorMetadata(Body):
    """A tensor that a model takes or gives."""

    name: str
    datatype: str
    shape: list[int]


class InferenceModel(Body):
    """The tensors of a model."""

    name: ModelName
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class InputParameters(Body, total=False):
    """Parameters of an input."""

    binary_data_size: Count


class InputTensor(Body):
    """An input."""

    name: str
    shape: Annotated[list[_Length], Field(min_length=1, max_length=2)]
    datatype: Datatype
    data: NotRequired[list[float] | list[list[float]]]
    """Numbers in row-major order, flat or nested."""
    parameters: NotRequired[InputParameters]


class OutputParameters(Body, total=False):
    """Parameters of an output that is asked for."""

    binary_data: bool


class WantedOutput(Body):
    """An output that is asked for."""

    name: OutputName
    parameters: NotRequired[OutputParameters]


class InferenceParameters(Body, total=False):
    """Parameters of a request."""

    head: str
    min_sequence: MinSequence
    binary_data_output: bool


class InferenceRequest(Body):
    """Rows to be predicted."""

    inputs: Annotated[list[InputTensor], Field(min_length=1)]
    id: NotRequired[str]
    parameters: NotRequired[InferenceParameters]
    outputs: NotRequired[list[WantedOutput]]


class OutputTensor(Body):
    """An output."""

    name: str
    datatype: str
    shape: list[int]
    data: NotRequired[list[float | str | bool]]
    """Values in row-major order."""
    parameters: NotRequired[dict[str, Any]]


class InferenceAnswer(Body):
    """Predictions."""

    model_name: ModelName
    model_version: str
    id: NotRequired[str]
    parameters: dict[str, Any]
    outputs: list[OutputTensor]


class InferenceError(Body):
    """A refusal in the protocol's form."""

    error: str
