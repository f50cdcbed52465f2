"""A callback for tests."""


class Watch:
    """A callback that counts tasks, and stops or interrupts at a given one."""

    def __init__(self, stop_at=None, interrupt_at=None):
        self.stop_at, self.interrupt_at = stop_at, interrupt_at
        self.begun = self.ended = self.set_up = self.torn_down = 0
        self.whole_ended = False

    def setup(self, estimator, context):
        self.set_up += 1
        self.expected = context.max_subtasks

    def teardown(self, estimator, context):
        self.torn_down += 1

    def on_fit_task_begin(self, estimator, context):
        self.begun += context.parent is not None

    def on_fit_task_end(self, estimator, context):
        if context.parent is None:
            self.whole_ended = True
            return False
        self.ended += 1
        if self.ended == self.interrupt_at:
            raise KeyboardInterrupt
        return self.ended == self.stop_at
