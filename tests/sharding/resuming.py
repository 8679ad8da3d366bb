"""A long computation of two processes with a checkpoint after each part, which resumes at the last.

`resuming.py RANK PORT FOLDER DIES`: PageRank and shortest paths over four devices, by products in
parts of three. DIES "dies": process 1 is killed after its fourth part; "reads": while it reads the
file FOLDER. Prints "right" where the end
is that of a run without a break, and from which part it went on. docs/devices.md shows it.
"""

import os
import signal
import sys

if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_NUM_CPU_DEVICES"] = "2"
    os.environ["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

PARTS, ROUNDS, DAMPING = 8, 3, 0.85


def start(G):
    """Equal scores, and no way but to vertex 3; whole on every device, as restored arrays are."""
    state = {
        "scores": np.full(G.n, 1 / G.n, np.float32),
        "lengths": np.where(np.arange(G.n) == 3, 0, np.inf).astype(np.float32),
    }
    return jax.device_put(state, G.part.replicated)


@jax.jit
def part(G, state):
    """Three rounds of both; the state is all that they need."""
    strength = jsp.reduce(G, axis=1).todense()
    share = jnp.where(strength > 0, 1 / strength, 0)

    def one(_, s):
        loose = jnp.sum(jnp.where(strength > 0, 0, s["scores"]))
        flow = jsp.vxm(s["scores"] * share, G) + loose / G.n
        lengths = jsp.vxm(s["lengths"], G, "min_plus")
        return {
            "scores": DAMPING * flow + (1 - DAMPING) / G.n,
            "lengths": jnp.minimum(s["lengths"], lengths),
        }

    return jax.lax.fori_loop(0, ROUNDS, one, state)


def main(rank, port, folder, dies):
    """All parts, from the last checkpoint on."""
    import orbax.checkpoint as ocp

    # A process that is not heard of for so many seconds ends the others with an error.
    patience = {"heartbeat_timeout_seconds": 10, "shutdown_timeout_seconds": 10}
    jax.distributed.initialize(f"localhost:{port}", 2, int(rank), **patience)
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    if dies == "reads":
        if int(rank) == 1:
            signal.setitimer(signal.ITIMER_REAL, 0.05)  # SIGALRM ends it
        G = jsp.sharding.shard_file(folder, mesh)
        print("read", G.n, flush=True)
        return
    G = jsp.sharding.shard_rmat(jax.random.key(0), 8, 4, mesh=mesh)
    state, first = start(G), 0
    with ocp.CheckpointManager(folder) as checkpoints:
        if (last := checkpoints.latest_step()) is not None:
            state, first = checkpoints.restore(last, args=ocp.args.StandardRestore(state)), last
        for k in range(first + 1, PARTS + 1):
            state = part(G, state)
            checkpoints.save(k, args=ocp.args.StandardSave(state))
            checkpoints.wait_until_finished()
            if k == 4 and int(rank) == 1 and dies == "dies":
                os.kill(os.getpid(), signal.SIGKILL)
    unbroken = start(G)
    for _ in range(PARTS):
        unbroken = part(G, unbroken)
    for name, values in state.items():
        np.testing.assert_array_equal(values, unbroken[name], name)
    A = G.unshard()
    np.testing.assert_array_equal(state["lengths"], jsp.sssp(A, 3).distances)
    np.testing.assert_allclose(state["scores"], jsp.pagerank(A, tol=1e-7).scores, rtol=1e-3)
    print(f"right, from part {first}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
