"""torch-struct's side of `structured`: run by an interpreter that has it, imports nothing of ours.

    PYTHON with_torch_struct.py INPUT.npz OUTPUT.npz REPEAT

INPUT has `dense` (batch, steps, old state, new state) and `k`; OUTPUT the values and least times.
"""

import sys

import numpy as np
import peer_answers
import torch
from torch_struct import LinearChainCRF

torch.set_num_threads(1)
data = np.load(sys.argv[1])
scores = torch.from_numpy(data["dense"]).transpose(2, 3).contiguous()  # theirs: new state first


def marginals():
    with torch.enable_grad():
        return LinearChainCRF(scores).marginals


questions = {
    "sum over paths": lambda: LinearChainCRF(scores).partition,
    "gradient": lambda: marginals().transpose(2, 3),
    "entropy": lambda: LinearChainCRF(scores).entropy,
    "best paths": lambda: LinearChainCRF(scores).kmax(int(data["k"])).T,
}
peer_answers.save(sys.argv[2], questions, sys.argv[3])
