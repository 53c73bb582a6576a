"""python3 torch_places.py FOLDER PART PARTS THREADS: trains the NDVI model of every PARTS-th place of a folder, as src/training does."""
import glob
import json
import math
import sys
import time

import numpy as np
import torch
from torch import nn

folder, part, parts, threads = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(threads)
SIZE, BANDS = 16, 3
MIX = torch.tensor([[10 / 3, 10 / 3, 10 / 3], [10, -10, 0], [0, 10, -10]])
MIX_BIAS = torch.tensor([-1.0, 0.0, 0.0])


class Ndvi(nn.Module):
    def __init__(self):
        super().__init__()
        layers, channels = [], BANDS
        for filters in (8, 16, 32):
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(), nn.AvgPool2d(2)]
            channels = filters
        self.features = nn.Sequential(*layers)
        self.dense = nn.Linear(32, 32)
        self.change = nn.Linear(32, 1, bias=False)
        nn.init.zeros_(self.change.weight)
        self.line = nn.Linear(BANDS, 1)

    def forward(self, x):
        mixed = torch.einsum("nchw,dc->ndhw", x, MIX) + MIX_BIAS[:, None, None]
        deep = self.change(torch.relu(self.dense(self.features(mixed).mean((2, 3)))))
        return deep + self.line(x.mean((2, 3)))


def read(path):
    about = json.load(open(path))
    values = torch.from_numpy(np.fromfile(path.replace(".json", ".f32"), np.float32))
    sets, at = [], 0
    for name in ("train", "validation"):
        count = about[name]
        size = count * SIZE * SIZE * BANDS
        x = values[at : at + size].reshape(count, SIZE, SIZE, BANDS).permute(0, 3, 1, 2).contiguous()
        y = values[at + size : at + size + count].reshape(count, 1)
        sets.append((x, y))
        at += size + count
    return about, sets


def train(about, sets):
    (x, y), (vx, vy) = sets
    net = Ndvi()
    # The line is fitted first, as ours is.
    means = torch.cat([x.mean((2, 3)), torch.ones(len(x), 1)], 1)
    fit = torch.linalg.lstsq(means, y).solution
    with torch.no_grad():
        net.line.weight.copy_(fit[:BANDS].T)
        net.line.bias.copy_(fit[BANDS:, 0])
    adam = torch.optim.Adam(net.parameters(), lr=about["learningRate"])
    epochs, batch = about["epochs"], about["batchSize"]
    steps, step = epochs * math.ceil(len(x) / batch), 0
    for _ in range(epochs):
        order = torch.randperm(len(x))
        for start in range(0, len(x), batch):
            chosen = order[start : start + batch]
            # One turn for a whole batch, which is less work than ours.
            turn = int(torch.randint(8, (1,)))
            inputs = torch.rot90(x[chosen], turn & 3, (2, 3))
            if turn & 4:
                inputs = inputs.flip(3)
            for group in adam.param_groups:
                group["lr"] = 0.5 * about["learningRate"] * (1 + math.cos(math.pi * step / steps))
            step += 1
            adam.zero_grad()
            loss = nn.functional.mse_loss(net(inputs), y[chosen])
            loss.backward()
            adam.step()
        with torch.no_grad():
            nn.functional.mse_loss(net(vx), vy)


places = [read(path) for path in sorted(glob.glob(f"{folder}/place-*.json"))[part::parts]]
begin = time.time()
for about, sets in places:
    train(about, sets)
print(json.dumps({"from": begin, "to": time.time()}))
