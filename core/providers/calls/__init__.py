"""Parts that all remote providers share: keys, attempts, pacing, the journal of replies."""

from core.providers.calls.caller import Caller, Pacer, caller_for
from core.providers.calls.failures import Failure, failure
from core.providers.calls.journal import Journal, call_key, text_hash
from core.providers.calls.keys import Keys, Secret, redact
from core.providers.config import Limits

__all__ = [
    "Caller",
    "Failure",
    "Journal",
    "Keys",
    "Limits",
    "Pacer",
    "Secret",
    "call_key",
    "caller_for",
    "failure",
    "redact",
    "text_hash",
]
