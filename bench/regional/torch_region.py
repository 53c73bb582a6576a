"""python3 torch_region.py FOLDER: trains a base on all places and adapts it to each, as src/training/adaptation.ts does; prints both errors."""
import copy
import glob
import json
import math
import os
import sys

import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "engine"))
from torch_ndvi import Ndvi, fit_line, read  # noqa: E402

RATE_FACTOR, EPOCHS_FRACTION, WARMUP, OTHERS = 0.2, 1 / 3, 0.1, 1 / 2

torch.set_num_threads(1)
places = [read(path) for path in sorted(glob.glob(f"{sys.argv[1]}/place-*.json"))]
about = places[0][0]
torch.manual_seed(about["seed"])


def train(net, x, y, epochs, rate, warmup):
    adam = torch.optim.Adam(net.parameters(), lr=rate)
    batch = about["batchSize"]
    steps, step = epochs * math.ceil(len(x) / batch), 0
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for start in range(0, len(x), batch):
            chosen = order[start : start + batch]
            turn = int(torch.randint(8, (1,)))
            inputs = torch.rot90(x[chosen], turn & 3, (2, 3))
            inputs = inputs.flip(3) if turn & 4 else inputs
            ramp = min(1, (step + 1) / (warmup * steps + 1))
            for group in adam.param_groups:
                group["lr"] = 0.5 * rate * ramp * (1 + math.cos(math.pi * step / steps))
            step += 1
            adam.zero_grad()
            nn.functional.mse_loss(net(inputs), y[chosen]).backward()
            adam.step()
    return net


def error(net, x, y):
    with torch.no_grad():
        return float(nn.functional.mse_loss(net(x), y))


def spread(count, limit):
    return [i * count // limit for i in range(min(limit, count))]


x, y = (torch.cat([sets[0][i] for _, sets in places]) for i in (0, 1))
base = Ndvi()
fit_line(base, x, y)
train(base, x, y, about["epochs"], about["learningRate"], 0)
share = math.ceil(OTHERS * about["maxPatches"] / max(1, len(places) - 1))
shared = [[part[spread(len(part), min(share, len(part)))] for part in sets[0]] for _, sets in places]
errors = []
for i, (_, (own, validation)) in enumerate(places):
    others = [torch.cat([shared[j][k] for j in range(len(places)) if j != i]) for k in (0, 1)]
    chosen = spread(len(others[0]), min(len(others[0]), round(OTHERS * len(own[0]))))
    both = [torch.cat([own[k], others[k][chosen]]) for k in (0, 1)]
    epochs = max(1, round(EPOCHS_FRACTION * about["epochs"]))
    net = train(copy.deepcopy(base), *both, epochs, RATE_FACTOR * about["learningRate"], WARMUP)
    errors.append({"base": error(base, *validation), "adapted": error(net, *validation)})
print(json.dumps(errors))
