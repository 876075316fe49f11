# The part of cuda-python that run_canary.py uses, on a machine without a GPU: its memory is the host's.
import ctypes
import enum

blocks = {}


class cudaMemcpyKind(enum.IntEnum):
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2


def cudaStreamCreate():
    return 0, 77


def cudaStreamSynchronize(stream):
    return (0 if stream == 77 else 1,)


def cudaMalloc(size):
    block = (ctypes.c_ubyte * size)()
    blocks[ctypes.addressof(block)] = block
    return 0, ctypes.addressof(block)


def cudaFree(pointer):
    return (0 if blocks.pop(pointer, None) is not None else 1,)


def cudaMemcpy(target, source, size, kind):
    device = target if kind == cudaMemcpyKind.cudaMemcpyHostToDevice else source
    if device not in blocks or size > len(blocks[device]):
        return (1,)
    ctypes.memmove(target, source, size)
    return (0,)
