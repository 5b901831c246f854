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

"""The interference that TRACON's authors published: their Table 1.

Table 1 is the only interference between programs in the paper (Chiang & Huang, SC'11): the runtime
of two programs, as a multiple of that alone, beside four backgrounds. Each prefers the other kind:
Calc suffers less beside one that uses the disk, SeqRead hardly at all beside one that computes.

The paper's simulations use eight applications (Table 3), whose pairs it does not publish. Here
those of low I/O intensity behave as Calc does, the others as SeqRead; where the ranks are cut is
an assumption of ours. :func:`spindle` is what the law of queueing says of the host of the paper.
"""

from __future__ import annotations

import numpy as np

from tracon_lab.simulator import truth as truths
from tracon_watcher import errors

#: Names of the host types, and of these truths.
NAME, SPINDLE = 'table1', 'spindle'
NAMES = (NAME, SPINDLE)
BACKGROUNDS = ('CPU high', 'I/O high', 'CPU and I/O medium', 'CPU and I/O high')
#: Runtime beside each of :data:`BACKGROUNDS`, over that alone.
RUNTIME = {'Calc': (1.96, 1.26, 1.77, 2.52), 'SeqRead': (1.03, 10.23, 1.78, 16.11)}
#: Table 3, by rank of I/O intensity.
APPLICATIONS = ('email', 'web', 'blastp', 'compile', 'freqmine', 'blastn', 'dedup', 'video')
#: Ranks 1 to 3 are Calc. Assumed.
CALC_RANKS = 3


def truth(calc_ranks: int = CALC_RANKS) -> truths.Truth:
    """Return the interference between the eight applications, by two rows of Table 1.

    What Calc is to others is the column "CPU high", what SeqRead is to them "I/O high". The IOPS
    ratio of SeqRead is one over its slowdown; Calc has none. In units of what SeqRead does alone,
    all SeqRead have the same IOPS, as no others are published.

    :param calc_ranks: applications of the lowest ranks that are Calc, from 1 to 7
    :raises tracon_watcher.errors.InvalidOption: for another number
    """
    count = len(APPLICATIONS)
    if not 1 <= calc_ranks < count:
        raise errors.InvalidOption('calc_ranks', calc_ranks, f'from 1 to {count - 1}, so that '
                                   'there are both kinds')
    reads = np.arange(count) >= calc_ranks
    kinds = reads.astype(np.intp)
    slowdown = np.array([RUNTIME['Calc'][:2], RUNTIME['SeqRead'][:2]])[np.ix_(kinds, kinds)]
    ratio = np.where(reads[:, None], 1 / slowdown, np.nan)
    alone = {name: np.array([[float(one), 0.0, float(not one), 0.0]])
             for name, one in zip(APPLICATIONS, reads)}
    seconds = dict.fromkeys(APPLICATIONS, 1.0)
    return truths.Truth(NAME, APPLICATIONS, slowdown, ratio, np.ones((count, count)), alone,
                        seconds, seconds)


def spindle() -> truths.Truth:
    """Return the interference on a core for each VM and one disk, as on the paper's host (§4).

    A program uses the disk for a share a of its time alone. By the arrival theorem it finds the
    other one there for a share a′ of its time, and then takes W times as long: its slowdown is
    S = 1 + a a′ (W − 1). For closed loops this is exact, whatever the distribution of the time
    between requests. W = 10.23 is that of SeqRead beside SeqRead in Table 1, where both shares are
    1: each waits for the other, which is a factor of 2, and loses its sequence, a factor of 5.1.
    The IOPS ratio is 1 / S.

    Table 3 ranks the applications and states no shares: a = (rank − 1/2) / 8 is our assumption.
    """
    count = len(APPLICATIONS)
    share = (np.arange(count) + 0.5) / count
    slowdown = 1.0 + np.outer(share, share) * (RUNTIME['SeqRead'][1] - 1.0)
    alone = {name: np.array([[one, 0.0, 1.0 - one, 0.0]])
             for name, one in zip(APPLICATIONS, share)}
    seconds = dict.fromkeys(APPLICATIONS, 1.0)
    return truths.Truth(SPINDLE, APPLICATIONS, slowdown, 1.0 / slowdown, np.ones((count, count)),
                        alone, seconds, seconds)
