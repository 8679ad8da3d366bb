"""k2's side of `structured`: run by an interpreter that has it, imports nothing of ours.

    PYTHON with_k2.py INPUT.npz OUTPUT.npz REPEAT

INPUT has `row`, `col`, `weights` (batch, by row) and `first`, `last`; OUTPUT the values and least
times.
"""

import sys

import k2
import numpy as np
import peer_answers
import torch

torch.set_num_threads(1)
data = np.load(sys.argv[1])
first, last = data["first"] + 1, data["last"] + 1  # 0 is the start of k2's graph
end = int(data["last"].max()) + 2
ends = [np.zeros_like(first), first, np.ones_like(first)]
body = [data["row"] + 1, data["col"] + 1, np.ones_like(data["row"])]
tail = [last, np.full_like(last, end), np.full_like(last, -1)]
arcs = np.concatenate([np.stack(part) for part in (ends, body, tail)], 1).astype(np.int32)
lanes = []
for weights in data["weights"]:
    scores = np.concatenate([np.zeros(len(first)), weights, np.zeros(len(last))])
    bits = scores.astype(np.float32).view(np.int32)
    lanes.append(k2.Fsa(torch.from_numpy(np.concatenate([arcs, bits[None]]).T.copy())))
fsas = k2.create_fsa_vec(lanes)
inner = slice(len(first), len(first) + data["weights"].shape[1])


def gradient():
    fsas.scores.requires_grad_(True)
    (found,) = torch.autograd.grad(fsas.get_tot_scores(False, True).sum(), fsas.scores)
    fsas.scores.requires_grad_(False)
    return found.reshape(len(lanes), -1)[:, inner]


def fresh():
    """k2 keeps what it has computed; a question starts without that."""
    fsas._cache.clear()
    return fsas


questions = {
    "sum over paths": lambda: fresh().get_tot_scores(use_double_scores=False, log_semiring=True),
    "gradient": lambda: fresh() and gradient(),
    "best path": lambda: fresh().get_tot_scores(use_double_scores=False, log_semiring=False),
}
peer_answers.save(sys.argv[2], questions, sys.argv[3])
