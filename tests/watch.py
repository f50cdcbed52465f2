"""Callbacks for tests."""


class Watch:
    """A callback that counts tasks, and stops or interrupts at a given one."""

    def __init__(self, stop_at=None, interrupt_at=None):
        self.stop_at = stop_at
        self.interrupt_at = interrupt_at
        self.set_up = 0
        self.torn_down = 0
        self.begun = 0
        self.ended = 0
        self.whole_ended = False

    def setup(self, estimator, context):
        self.set_up += 1
        self.expected = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        if context.parent is not None:
            self.begun += 1

    def on_fit_task_end(self, estimator, context):
        if context.parent is None:
            self.whole_ended = True
            return False
        self.ended += 1
        if self.ended == self.interrupt_at:
            raise KeyboardInterrupt
        return self.ended == self.stop_at


class Impatient(Watch):
    """A callback that interrupts a task before it has begun."""

    def on_fit_task_begin(self, estimator, context):
        super().on_fit_task_begin(estimator, context)
        if self.begun == self.interrupt_at:
            raise KeyboardInterrupt
