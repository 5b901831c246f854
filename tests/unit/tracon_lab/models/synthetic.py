# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""SYNTHETIC points: invented, so that models can be tried where nothing was measured.

Two resources, a core and a device, each shared in proportion to demand once they are full; a
little waiting before that; noise. Nothing of it is a measurement.
"""

import csv

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.models import points
from tracon_watcher import characteristics

# reads/s, writes/s, guest CPU, host CPU; invented
PROGRAMS = {
    'cpu': (0, 0, 0.97, 0.02), 'seqread': (2500, 0, 0.25, 0.55), 'randread': (3300, 0, 0.3, 0.6),
    'seqwrite': (0, 1200, 0.2, 0.4), 'mixed': (900, 500, 0.35, 0.35),
    'openread': (400, 0, 0.1, 0.15), 'search': (300, 0, 0.8, 0.1)}
CAPACITY = np.array([3300.0, 1800.0, 1.0, 0.65])


def slowdown(target, background):
    """Return the synthetic truth of (4,) demands."""
    cpu_t, cpu_b = target[2:].sum(), background[2:].sum()
    io_t, io_b = (target[:2] / CAPACITY[:2]).sum(), (background[:2] / CAPACITY[:2]).sum()
    granted = min(cpu_t, max(1 - cpu_b, 0.5)) / cpu_t
    busy = 1 / (1 - 0.35 * min(io_b, 1) * min(io_t, 1))
    return 1 / granted * busy * (1 + 0.15 * cpu_b)


def settings(rng, count):
    """Return generator settings (count, 4)."""
    level = rng.choice([0, 0.25, 0.5, 0.75, 1.0], size=(count, 3))
    io = np.maximum(level[:, 1] + level[:, 2], 1.0)
    reads, writes = 2500 * level[:, 1] / io, 1200 * level[:, 2] / io
    host = (0.00022 * reads + 0.00033 * writes + 0.01) * rng.uniform(0.85, 1.15, count)
    guest = np.minimum(0.95 * level[:, 0], 1 - host) + 0.0001 * (reads + writes)
    return np.column_stack([reads, writes, guest, host])


def build(seed=0, noise=0.04, generator=40, backgrounds=30, names=tuple(PROGRAMS)):
    """Return synthetic points of one host type, of the programs of these names."""
    rng = np.random.default_rng(seed)
    behind, front = settings(rng, backgrounds), settings(rng, generator)
    rows = []

    def add(kind, name, other, target, background):
        value = slowdown(target, background) * np.exp(noise * rng.normal())
        rows.append((kind, name, other, target, background, value))

    for name in names:
        target = np.array(PROGRAMS[name], dtype=float)
        rows.append(('solo', name, '', target, np.zeros(4), np.nan))
        for index, background in enumerate(behind):
            add('background', name, f'generator-{index:02}', target, background)
        for other in names:
            add('pair', name, other, target, np.array(PROGRAMS[other], dtype=float))
    for index, target in enumerate(front):
        for number in rng.choice(backgrounds, min(3, backgrounds), replace=False):
            add('generator', f'setting-{index:02}', f'generator-{number:02}', target,
                behind[number])
    for index in range(min(12, backgrounds)):
        name = names[index % len(names)]
        for _ in range(5):
            add('repeat', name, f'generator-{index:02}', np.array(PROGRAMS[name], dtype=float),
                behind[index])
    kind, target, background, alone, beside, value = zip(*rows)
    alone, beside, value = np.array(alone), np.array(beside), np.array(value)
    ratio = np.where(alone[:, :2].sum(axis=1) >= 5, 1 / value, np.nan)
    observed = np.minimum(alone + beside, CAPACITY)
    return points.Points('synthetic', np.array(kind), np.array(target), np.array(background),
                         alone, beside, value, ratio, observed)


def write(path, measured, host_type='synthetic'):
    """Write synthetic points as a file of measurements."""
    def four(prefix, values):
        return {f'{prefix}_{name}': '' if np.isnan(value) else repr(float(value))
                for name, value in zip(characteristics.NAMES, values)}

    with open(path, 'w', encoding='utf-8', newline='') as stream:
        stream.write(f'# schema: {dataset.SCHEMA}\n# host_type: {host_type}\n'
                     '# note: SYNTHETIC, nothing here was measured\n')
        writer = csv.DictWriter(stream, dataset.COLUMNS, restval='', lineterminator='\n')
        writer.writeheader()
        for index in range(len(measured)):
            solo = measured.kind[index] == 'solo'
            row = {'point': f'p{index}', 'kind': measured.kind[index],
                   'target': measured.target[index], 'background': measured.background[index],
                   'repetition': '0',
                   **four('target_alone', measured.target_alone[index]),
                   **four('target_observed', measured.observed[index])}
            if not solo:
                row |= {**four('background_alone', measured.background_alone[index]),
                        **four('background_observed', np.zeros(4))}
            for name in ('slowdown', 'iops_ratio'):
                value = getattr(measured, name)[index]
                row[name] = '' if np.isnan(value) else repr(float(value))
            writer.writerow(row)
