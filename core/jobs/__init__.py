"""Long-running work: in a separate process or shared by several, watched by its state file, cancelled."""

from core.jobs.job import JobStatus, Launch, State, Tracker, begin, jobs, new_folder, read_status
from core.jobs.process import Stopped, Watch, asked_to_stop, cores, spread, spread_over, stop

__all__ = [
    "JobStatus",
    "Launch",
    "State",
    "Stopped",
    "Tracker",
    "Watch",
    "asked_to_stop",
    "begin",
    "cores",
    "jobs",
    "new_folder",
    "read_status",
    "spread",
    "spread_over",
    "stop",
]
