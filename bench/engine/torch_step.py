"""python3 torch_step.py NET STEPS: the CPU time of a training step in PyTorch, eager, float32, one thread; nets as in nets.ts."""
import json
import resource
import statistics
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

WARM = 3


class Ndvi(nn.Module):
    shape, target = (16, 3, 64, 64), (16, 1)

    def __init__(self):
        super().__init__()
        layers, channels = [], 3
        for filters in (32, 64, 64, 128):
            layers += [nn.Conv2d(channels, filters, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)]
            channels = filters
        self.all = nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 128), nn.ReLU(), nn.Linear(128, 1))

    def forward(self, x):
        return self.all(x)


def block(channels, filters):
    return nn.Sequential(nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.LeakyReLU(0.2))


class UNet(nn.Module):
    shape, target = (4, 3, 128, 128), (4, 1, 128, 128)

    def __init__(self):
        super().__init__()
        self.down = nn.ModuleList([block(3, 32), block(32, 64), block(64, 128)])
        self.middle = block(128, 256)
        self.up = nn.ModuleList([nn.ConvTranspose2d(c, c // 2, 2, 2) for c in (256, 128, 64)])
        self.blocks = nn.ModuleList([block(256, 128), block(128, 64), block(64, 32)])
        self.last = nn.Conv2d(32, 1, 1)

    def forward(self, x):
        skips = []
        for down in self.down:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, conv in zip(self.up, self.blocks):
            x = conv(torch.cat([skips.pop(), up(x)], 1))
        return torch.tanh(self.last(x))


torch.set_num_threads(1)
torch.manual_seed(1)
net = {'ndvi': Ndvi, 'unet': UNet}[sys.argv[1]]()
x, y = torch.rand(net.shape), torch.rand(net.target)
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
times = []
for step in range(WARM + int(sys.argv[2])):
    before = time.process_time()
    optimizer.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()
    loss.item()
    if step >= WARM:
        times.append((time.process_time() - before) * 1e3)
rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
print(json.dumps({'milliseconds': statistics.median(times), 'version': torch.__version__, 'rss': rss}))
