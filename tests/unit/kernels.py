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

"""Runs of one module under the kernels of several CPUs, whose answers must be the same.

OpenBLAS takes the kernels that ``OPENBLAS_CORETYPE`` names, numpy leaves out those that
``NPY_DISABLE_CPU_FEATURES`` names, and the C library those of ``GLIBC_TUNABLES``. All are read
when a process starts, so each run is a process of its own.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import os
import pathlib
import platform
import subprocess
import sys
import typing
import unittest

ROOT = pathlib.Path(__file__).parents[2]
SECONDS = 600
#: What a CPU must have for kernels of OpenBLAS, in numpy's words.
CORES = {'Prescott': ('SSE3',),
         'Haswell': ('AVX2', 'FMA3'),
         'Zen': ('AVX2', 'FMA3'),
         'SkylakeX': ('AVX512F', 'AVX512CD', 'AVX512BW', 'AVX512DQ', 'AVX512VL')}
#: Kernels of numpy that are left out together: those of AVX-512 first, then of AVX2 and FMA3 too.
_AVX512 = ('X86_V4', 'AVX512')
_AVX2 = ('X86_V3', 'AVX2', 'FMA3')


@dataclasses.dataclass(frozen=True)
class Kernels:
    """Environment variables by which a process computes as it would on another CPU."""

    name: str
    environment: tuple[tuple[str, str], ...]


@functools.cache
def available() -> tuple[tuple[Kernels, ...], tuple[str, ...]]:
    """Return the kernels that this CPU can run, and why it cannot run the others."""
    found, missing = [], []
    features, dispatched = _features()
    for name, needed in CORES.items():
        lacking = [feature for feature in needed if not features.get(feature)]
        if lacking:
            missing.append(f'OPENBLAS_CORETYPE={name}: this CPU ({platform.machine()}) has no '
                           + ', '.join(lacking))
        else:
            found.append(Kernels(name, (('OPENBLAS_CORETYPE', name),)))
    for name, starts, more in (
            ('numpy without AVX-512', _AVX512, ()),
            ('numpy without AVX2', (*_AVX512, *_AVX2),
             (('GLIBC_TUNABLES', 'glibc.cpu.hwcaps=-AVX2,-FMA,-AVX2_Usable,-FMA_Usable'),))):
        without = [feature for feature in dispatched
                   if features.get(feature) and feature.startswith(starts)]
        if without:
            found.append(Kernels(
                name, (('NPY_DISABLE_CPU_FEATURES', ' '.join(without)), *more)))
        else:
            missing.append(f'{name}: it takes none here')
    return tuple(found), tuple(missing)


def _features() -> tuple[dict[str, bool], list[str]]:
    """Return what the CPU has, and what numpy has kernels for beyond the least that it needs."""
    for name in ('numpy._core._multiarray_umath', 'numpy.core._multiarray_umath'):
        try:
            umath = importlib.import_module(name)
        except ModuleNotFoundError:     # the second is the name before numpy 2
            continue
        return umath.__cpu_features__, umath.__cpu_dispatch__
    raise AssertionError('numpy does not tell what the CPU has')


def run(module: str, kernels: Kernels) -> typing.Any:
    """Return the document that a module prints as JSON when it is run under these kernels."""
    done = subprocess.run([sys.executable, '-m', module], cwd=ROOT,
                          env=_environment(kernels), capture_output=True, text=True,
                          timeout=SECONDS)
    if done.returncode:
        raise AssertionError(f'{module} under {kernels.name}: {done.stderr}')
    return json.loads(done.stdout)


def differences(one: typing.Any, other: typing.Any, where: str = '') -> list[str]:
    """Return where two documents differ, one line each."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [line for key in one
                for line in differences(one[key], other[key], f'{where}/{key}')]
    return [] if one == other else [f'{where}: {_short(one)} is not {_short(other)}']


def _short(value: typing.Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 400 else text[:400] + '…'


def tested(modules: typing.Sequence[str], kernels: Kernels) -> str:
    """Return the end of what unittest says of tests under these kernels, '' for success."""
    done = subprocess.run([sys.executable, '-m', 'unittest', *modules], cwd=ROOT,
                          env=_environment(kernels), capture_output=True, text=True,
                          timeout=SECONDS)
    return done.stderr[-4000:] if done.returncode or 'Ran 0 tests' in done.stderr else ''


def _environment(kernels: Kernels) -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items()
               if name not in ('OPENBLAS_CORETYPE', 'NPY_DISABLE_CPU_FEATURES')},
            'PYTHONPATH': os.pathsep.join(
                [str(ROOT), *filter(None, [os.environ.get('PYTHONPATH')])]),
            'OPENBLAS_NUM_THREADS': '1', 'OMP_NUM_THREADS': '1', **dict(kernels.environment)}


class KernelsCase(unittest.TestCase):
    """Has checks that neither choices nor tests depend on a kernel."""

    def check(self, module: str) -> dict[str, typing.Any]:
        """Fail where the document that a module prints differs between kernels.

        :param module: of choices, not of numbers, which differ in their last bits
        :returns: the document
        """
        several, missing = available()
        for line in missing:
            print('left out:', line, file=sys.stderr)
        if len(several) < 2:
            self.skipTest('; '.join(missing))
        first, *others = several
        expected = run(module, first)
        self.assertTrue(expected)
        for kernels in others:
            found = differences(expected, run(module, kernels))
            with self.subTest(f'{kernels.name}, not {first.name}'):
                self.assertEqual([], found)
        return expected

    def check_tests(self, modules: typing.Sequence[str]) -> None:
        """Fail where tests fail under a kernel of OpenBLAS that this CPU can run."""
        several, missing = available()
        for line in missing:
            print('left out:', line, file=sys.stderr)
        cores = [one for one in several if one.name in CORES]
        if not cores:
            self.skipTest('; '.join(missing))
        for kernels in cores:
            with self.subTest(kernels.name):
                self.assertEqual('', tested(modules, kernels))
