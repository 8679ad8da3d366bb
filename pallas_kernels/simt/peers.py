"""Where the arrays of a kernel lie on the other devices of its mesh."""

# MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

from jaxlib.mlir.dialects import arith

from .emitter import type_of


class Peers:
    """The addresses of all arrays on all devices, in shared memory.

    Asked for once, by one warp of a CTA: XLA's table lies in global memory, two dependent accesses
    away, which after every meeting go to the L2 cache.
    """

    def __init__(self, k, arrays, remote):
        """remote(ref, device) -> the address of an array on a device, i64."""
        self.k, self.number = k, {id(a): j for j, a in enumerate(arrays)}
        self.table = k.shared(self.shared_words(k.devices, len(arrays)))
        device = k.where(k.lane < k.devices, k.lane, 0)

        def fill():
            for a in arrays:
                pair = self._words(remote(a.ref, device.v))
                k.store_vec(self.table, self._place(a, device), pair, mask=k.lane < k.devices)

        k.if_(k.warp == 0, fill)
        k.sync()

    @staticmethod
    def shared_words(devices, arrays):
        """How many shared words it takes."""
        return 2 * devices * arrays

    def base(self, a, device):
        """The address of `a` on a device, i64."""
        low, high = self.k.load_vec(self.table, self._place(a, device), 2)
        i64 = type_of("i64")
        shifted = arith.shli(arith.extui(i64, high.v), arith.constant(i64, 32))
        return arith.ori(shifted, arith.extui(i64, low.v))

    def _place(self, a, device):
        return 2 * (self.number[id(a)] * self.k.devices + device)

    def _words(self, address):
        k, i32, i64 = self.k, type_of("i32"), type_of("i64")
        high = arith.shrui(address, arith.constant(i64, 32))
        return [type(k.lane)(k, arith.trunci(i32, x), "i32") for x in (address, high)]
