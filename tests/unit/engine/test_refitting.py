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

"""Models that drift in a synthetic cloud, are learnt anew, stored, and used."""

import dataclasses
import json
import types

import numpy as np

from tests import synthetic
from tests.unit.engine import drifting
from tests.unit.engine.storage import base
from tests.unit.engine.test_freshness import times
from tracon_watcher.engine import active_models
from tracon_watcher.engine import freshness
from tracon_watcher.engine import refitting
from tracon_watcher.engine.storage import documents
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import storage
from tracon_watcher.models import adaptation
from tracon_watcher.placement import assessment

TYPE = synthetic.HOST_TYPE
LOGGER = 'tracon_watcher.engine'


class Engine:
    """What an engine has of this: the models in use, who watches them, and who learns."""

    def __init__(self, case, holder):
        self.case = case
        self.reports = []
        self.models = active_models.ActiveModels(
            lambda: case.files, storage.Storage(case.database).models,
            lambda _kind, text: self.reports.append(text))
        self.watched = freshness.Freshness(drifting.POLLING)
        self.term = case.lead(holder)
        self.refitting = refitting.Refitting(
            self.watched, self.models, lambda: self.term, lambda: case.world.now)

    def cycles(self, count, refit=True):
        """Have cycles, and in between what is due done."""
        for _cycle in range(count):
            self.case.world.cycle(self.watched, self.models())
            if refit:
                self.refitting.work()

    def trust(self):
        return self.watched.trust(self.models()).get(TYPE, 1.0)


class RefittingCase(base.StorageCase):

    def setUp(self):
        super().setUp()
        # They are the same objects until they change, as those of a directory.
        self.files = synthetic.models()
        self.world = drifting.World(hosts=10)
        self.engine = Engine(self, 'one')

    def drifted(self, engine=None):
        """Have a model drift and be learnt anew."""
        self.world.truth = times(1.7)
        with self.assertLogs(LOGGER) as logs:
            (engine or self.engine).cycles(30)
        return logs.output

    def error(self, models):
        """Return the mean error of exponents, on VMs that were never seen."""
        other = drifting.World(hosts=20, seed=99, truth=self.world.truth)
        view = other.view(models)
        truth = other.view({TYPE: assessment.Models(other.truth, other.truth)})
        return float(np.nanmean(np.abs(view.assessor.exponents()[0]
                                       - truth.assessor.exponents()[0])))


class TestRefitting(RefittingCase):

    def test_drift_alarm_refit_and_trust_again(self):
        self.engine.cycles(20)
        self.assertIs(self.files[TYPE], self.engine.models()[TYPE])
        before = self.files
        logs = self.drifted()
        self.assertIn('has drifted', logs[0])
        self.assertTrue(any('was refitted (' in line for line in logs), logs)
        self.assertEqual(1.0, self.engine.trust())
        self.assertEqual(1, self.engine.watched.alarms[TYPE])
        after = self.engine.models()
        self.assertLess(self.error(after), 0.5 * self.error(before))
        told = after[TYPE].slowdown.training['refit']
        self.assertIn(told['how'], (adaptation.RESCALED, adaptation.CORRECTED,
                                    adaptation.REFITTED))
        self.assertGreaterEqual(told['labels'], 20)
        self.assertLess(told['errors'][told['how']], 0.8 * told['errors']['kept'])
        # And nothing is alarmed by it.
        with self.assertNoLogs(LOGGER, 'WARNING'):
            self.engine.cycles(100, refit=False)

    def test_what_is_stored_tells_where_it_comes_from(self):
        self.drifted()
        active = self.storage.models.active()
        self.assertEqual([(TYPE, 'iops_ratio'), (TYPE, 'slowdown')],
                         [(one.host_type, one.response) for one in active])
        used = self.engine.models()[TYPE]
        self.assertEqual({documents.REFIT}, {one.origin for one in active})
        self.assertEqual([one.to_document() for one in (used.iops_ratio, used.slowdown)],
                         [one.content for one in active])
        first = self.storage.models.versions(TYPE, 'slowdown')[-1]
        self.assertEqual(self.files[TYPE].slowdown.to_document()['checksum'],
                         first.content['training']['refit']['parent'])
        self.assertEqual(self.engine.watched.refits[TYPE], active[1].version)

    def test_no_drift_no_refit(self):
        with self.assertNoLogs(LOGGER, 'WARNING'):
            self.engine.cycles(100)
        self.assertEqual([], self.storage.models.active())

    def test_what_no_model_explains_stays_distrusted(self):
        self.world.noise = 1.5
        measured = self.world.measured
        self.world.measured = lambda view: dataclasses.replace(
            (found := measured(view)), slowdown_deviation=np.full(len(found.vms), 0.05))
        with self.assertLogs(LOGGER) as logs:
            self.engine.cycles(30)
        self.assertTrue(any('no other model suits' in line for line in logs.output))
        self.assertLess(self.engine.trust(), 0.5)

    def test_it_survives_a_restart(self):
        self.drifted()
        again = Engine(self, 'again')
        self.assertEqual(self.engine.models()[TYPE].slowdown.to_document(),
                         again.models()[TYPE].slowdown.to_document())
        with self.assertNoLogs(LOGGER, 'WARNING'):
            again.cycles(10)
        # A next refit has the same files as its root.
        self.world.truth = times(0.5)
        with self.assertLogs(LOGGER):
            again.cycles(30)
        last = self.storage.models.active()[1].content
        self.assertGreater(self.storage.models.active()[1].version, 1)
        self.assertEqual(last, again.models()[TYPE].slowdown.to_document())

    def test_a_cycle_that_comes_with_the_new_model_at_once(self):
        self.world.truth = times(1.7)
        put = self.engine.models.put

        def putting(*given):
            version = put(*given)
            self.engine.cycles(1, refit=False)
            return version

        self.engine.models.put = putting
        with self.assertLogs(LOGGER):
            while not self.engine.watched.due():
                self.engine.cycles(1, refit=False)
            count = self.engine.watched.due()[0].count
            self.engine.cycles(1)
        self.assertEqual(1, self.engine.watched.refits[TYPE])
        self.assertGreater(self.engine.watched._types[TYPE].count, count)

    def test_drift_in_which_the_engine_restarts(self):
        self.world.truth = times(1.7)
        self.engine.cycles(1)
        again = Engine(self, 'again')
        self.drifted(again)
        self.assertEqual(1, len({one.version for one in self.storage.models.active()}))
        self.assertIn('refit', again.models()[TYPE].slowdown.training)

    def test_only_the_leader_puts_models_to_use(self):
        other = Engine(self, 'another')
        with self.assertLogs(LOGGER), self.assertRaises(storage_errors.NoLongerLeader):
            self.world.truth = times(1.7)
            self.engine.cycles(30)
        self.assertEqual([], self.storage.models.active())
        self.assertIs(self.files[TYPE], self.engine.models()[TYPE])
        self.drifted(other)
        self.assertEqual(2, len(self.storage.models.active()))
        # Who leads again reads what the other has stored.
        self.assertIs(self.files[TYPE], self.engine.models()[TYPE])
        self.engine.models.forget()
        self.assertIn('refit', self.engine.models()[TYPE].slowdown.training)

    def test_what_cannot_be_learnt_is_not_in_the_way_of_others(self):
        world = self.world
        world.truth = times(1.7)
        with self.assertLogs(LOGGER):
            self.engine.cycles(5, refit=False)
        due, = self.engine.watched.due()
        tries = []

        def tried(one, adopted):
            tries.append((one.host_type, adopted is not None))

        few = due.labels.take(np.arange(len(due.labels)) < 5)
        watched = types.SimpleNamespace(tried=tried, announce=lambda *_given: None, due=lambda: [
            dataclasses.replace(due, host_type='broken', labels=few), due])
        made = refitting.Refitting(watched, self.engine.models, lambda: self.engine.term,
                                   lambda: world.now)
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            made.work()
        self.assertEqual([('broken', False), (TYPE, True)], tries)
        self.assertRegex(logs.output[0], 'ERROR.*type broken: no model was learnt from 5 .*'
                                         'at least 20.* stays')

    def test_effects_many_times_as_large_are_learnt(self):
        # Times the ceiling that they had, they would pass what a stored model may have.
        small, large = synthetic.model(), times(7)
        self.files = {TYPE: assessment.Models(
            dataclasses.replace(small, coefficients=small.coefficients / 2, ceiling=8.0),
            self.files[TYPE].iops_ratio)}
        self.world.truth = large
        with self.assertLogs(LOGGER):
            self.engine.cycles(30)
        self.assertIn('refit', self.engine.models()[TYPE].slowdown.training)
        self.assertEqual(1.0, self.engine.trust())

    def test_without_the_database_the_engine_goes_on_and_refits_later(self):
        self.engine.models()
        self.execute('ALTER TABLE models RENAME TO gone')
        self.world.truth = times(1.7)
        with self.assertLogs(LOGGER), self.assertRaises(storage_errors.StorageFailed):
            self.engine.cycles(30)
        with self.assertNoLogs(LOGGER, 'ERROR'):
            self.engine.cycles(10, refit=False)
        self.assertIs(self.files[TYPE], self.engine.models()[TYPE])
        self.assertLess(self.engine.trust(), 0.5)
        self.execute('ALTER TABLE gone RENAME TO models')
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            self.engine.refitting.work()
        self.assertIn('was refitted', logs.output[-1])
        self.assertIn('refit', self.engine.models()[TYPE].slowdown.training)


class TestActiveModels(RefittingCase):

    def test_another_file_comes_first_and_the_same_one_does_not(self):
        self.drifted()
        refitted = self.engine.models()[TYPE]
        original = self.files
        self.files = synthetic.models()
        self.assertIs(refitted, self.engine.models()[TYPE])
        self.files = synthetic.models(seed=4)
        self.assertIs(self.files[TYPE], self.engine.models()[TYPE])
        self.assertEqual(1.0, self.engine.trust())
        self.files = {}
        self.assertEqual({}, self.engine.models())
        self.files = original
        self.assertIs(refitted, self.engine.models()[TYPE])

    def test_a_file_that_comes_while_it_is_learnt_comes_first(self):
        self.world.truth = times(1.7)
        with self.assertLogs(LOGGER):
            self.engine.cycles(30, refit=False)
        self.files = synthetic.models(seed=4)
        with self.assertLogs(LOGGER):
            self.engine.refitting.work()
        self.assertIs(self.files[TYPE], self.engine.models()[TYPE])
        # Nothing is learnt anew until that one has drifted.
        self.world.truth = self.files[TYPE].slowdown
        with self.assertNoLogs(LOGGER):
            self.engine.cycles(30)

    def test_while_the_database_cannot_be_read_the_files_are_used(self):
        self.drifted()
        again = Engine(self, 'again')
        self.execute('ALTER TABLE models RENAME TO gone')
        self.assertIs(self.files[TYPE], again.models()[TYPE])
        self.assertRegex(again.reports[-1], 'models that were refitted cannot be read')
        self.execute('ALTER TABLE gone RENAME TO models')
        self.assertIn('refit', again.models()[TYPE].slowdown.training)
        self.assertEqual(1, len(again.reports))

    def test_a_stored_model_that_is_broken_is_reported(self):
        self.drifted()
        self.execute("UPDATE models SET document = replace(document, 'crowding', 'crowing')")
        again = Engine(self, 'again')
        self.assertIs(self.files[TYPE], again.models()[TYPE])
        self.assertRegex(again.reports[-1], 'crow.*files of host type synthetic are used')

    def test_a_row_that_somebody_has_damaged_is_reported_again_and_again(self):
        self.drifted()
        for column, report in (
                ('document', 'no valid JSON.*files of host type synthetic are used'),
                ('errors', 'models that were refitted cannot be read: .*no valid JSON')):
            self.execute(f"UPDATE models SET {column} = '{{\"a' || {column} "
                         "WHERE response = 'slowdown'")
            again = Engine(self, column)
            for cycle in range(1, 3):
                self.assertIs(self.files[TYPE], again.models()[TYPE])
                self.assertEqual(cycle, len(again.reports))
                self.assertRegex(again.reports[-1], report)
            self.execute(f"UPDATE models SET {column} = substr({column}, 4) "
                         "WHERE response = 'slowdown'")
            again.models.forget()
            self.assertIn('refit', again.models()[TYPE].slowdown.training)

    def test_models_of_the_lab_in_the_database_are_not_taken_for_refits(self):
        for response in ('slowdown', 'iops_ratio'):
            kept = self.storage.models.add(
                json.dumps(synthetic.model(response, seed=9).to_document()), documents.LAB, 1.0)
            self.storage.models.activate(self.engine.term, [kept.id])
        again = Engine(self, 'again')
        self.assertIs(self.files[TYPE], again.models()[TYPE])
        self.assertEqual([], again.reports)
