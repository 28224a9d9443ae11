"""Chooses other outputs of an ONNX model: bytes in, bytes out, without the onnx package.

A model file is a protobuf message; what is needed of its schema is six field numbers. Knows nothing of any one model.
"""

from collections.abc import Iterator

# https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
_MODEL_GRAPH = 7
_GRAPH_NODE = 1
_GRAPH_OUTPUT = 12
_NODE_OUTPUT = 2
_VALUE_NAME = 1

_LENGTH = 2  # wire type of a field that carries its length


def with_outputs(model: bytes, outputs: tuple[str, ...], without: frozenset[str]) -> bytes:
    """`model` with exactly these outputs, any tensors of its graph, and without the nodes that make those in `without`.

    onnxruntime runs every node it is given, wanted or not. Raises `ValueError` for bytes that are no such message.
    """
    parts: list[bytes] = []
    for number, content, whole in _fields(memoryview(model)):
        parts.append(_field(number, _graph(content, outputs, without)) if number == _MODEL_GRAPH else bytes(whole))
    return b"".join(parts)


def _graph(graph: memoryview, outputs: tuple[str, ...], without: frozenset[str]) -> bytes:
    parts = [
        bytes(whole)
        for number, content, whole in _fields(graph)
        if number != _GRAPH_OUTPUT and not (number == _GRAPH_NODE and _makes(content) & without)
    ]
    parts += [_field(_GRAPH_OUTPUT, _field(_VALUE_NAME, name.encode())) for name in outputs]
    return b"".join(parts)


def _makes(node: memoryview) -> frozenset[str]:
    return frozenset(bytes(content).decode() for number, content, _ in _fields(node) if number == _NODE_OUTPUT)


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """(number, content, the field whole) of each field; content is empty for numbers."""
    at = 0
    try:
        while at < len(message):
            begin = at
            key, at = _read_varint(message, at)
            content = message[:0]
            match key & 7:
                case 0:
                    _, at = _read_varint(message, at)
                case 1:
                    at += 8
                case 2:
                    length, at = _read_varint(message, at)
                    content = message[at : at + length]
                    at += length
                case 5:
                    at += 4
                case kind:
                    raise ValueError(f"protobuf field of unknown kind {kind}")
            if at > len(message):
                raise ValueError("protobuf message is cut short")
            yield key >> 3, content, message[begin:at]
    except IndexError:
        raise ValueError("protobuf message is cut short") from None


def _read_varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | _LENGTH) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
