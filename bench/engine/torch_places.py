"""python3 torch_places.py FOLDER PART PARTS THREADS: trains the NDVI model of every PARTS-th place of a folder, as src/training does."""
import glob
import json
import math
import sys
import time

import torch
from torch import nn
from torch_ndvi import Ndvi, fit_line, read

folder, part, parts, threads = sys.argv[1], *map(int, sys.argv[2:])
torch.set_num_threads(threads)


def train(about, sets):
    (x, y), (vx, vy) = sets
    net = Ndvi()
    fit_line(net, x, y)
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
