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

"""The same choices whatever kernels OpenBLAS and numpy take for the CPU."""

import json
import os
import pathlib
import subprocess
import sys
import unittest

#: Kernels of OpenBLAS, with the feature that a CPU must have to run them.
_KERNELS = {'Prescott': 'sse3', 'Haswell': 'avx2', 'Zen': 'avx2', 'SkylakeX': 'avx512f'}
_FEATURES = ('AVX512F', 'AVX512CD', 'AVX512_SKX', 'AVX512_CLX', 'AVX512_CNL', 'AVX512_ICL',
             'AVX512_SPR')


def _flags():
    try:
        text = pathlib.Path('/proc/cpuinfo').read_text()
    except OSError:
        return set()
    return {flag for line in text.splitlines() if line.startswith('flags')
            for flag in line.partition(':')[2].replace('pni', 'sse3').split()}


class TestChoicesOnOtherCPUs(unittest.TestCase):

    def start(self, **variables):
        environment = {key: value for key, value in os.environ.items()
                       if key not in ('OPENBLAS_CORETYPE', 'NPY_DISABLE_CPU_FEATURES')}
        environment |= {'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1', **variables}
        process = subprocess.Popen([sys.executable, '-W', 'ignore', '-m',
                                    'tests.unit.scheduling.choices'], env=environment,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_the_kernels_make_no_difference(self):
        flags = _flags()
        settings = [{}, *({'OPENBLAS_CORETYPE': name} for name, needs in _KERNELS.items()
                          if needs in flags)]
        settings.append({'OPENBLAS_CORETYPE': 'Haswell' if 'avx2' in flags else 'Prescott',
                         'NPY_DISABLE_CPU_FEATURES': ' '.join(_FEATURES)})
        found = []
        for process in [self.start(**variables) for variables in settings]:
            out, err = process.communicate(timeout=300)
            self.assertEqual(0, process.returncode, err)
            found.append(json.loads(out))
        for variables, one in zip(settings[1:], found[1:]):
            for key, value in found[0].items():
                with self.subTest(what=key, **variables):
                    self.assertEqual(value, one[key])
