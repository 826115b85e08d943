"""What was spent on a data set: files, folders, and one way to charge them."""

from tacit.ledger.accounts import Accounts
from tacit.ledger.attributes import run_about
from tacit.ledger.charging import charge, check_account, check_accounts, new_run
from tacit.ledger.folder import (
    CENTRAL,
    DATA_SET,
    OWNERS,
    SUFFIX,
    create_ledgers,
    ledger_path,
    open_ledgers,
    open_paying,
)
from tacit.ledger.ledger import Ledger
from tacit.ledger.places import TOGETHER, accounts_beside, accounts_of, beside, ledgers_of, place_of
from tacit.ledger.rows import Cost, Entry
from tacit.ledger.run_secrets import RunSecrets, WipedSecretError

__all__ = [
    "CENTRAL",
    "DATA_SET",
    "OWNERS",
    "SUFFIX",
    "TOGETHER",
    "Accounts",
    "Cost",
    "Entry",
    "Ledger",
    "RunSecrets",
    "WipedSecretError",
    "accounts_beside",
    "accounts_of",
    "beside",
    "charge",
    "check_account",
    "check_accounts",
    "create_ledgers",
    "ledger_path",
    "ledgers_of",
    "new_run",
    "open_ledgers",
    "open_paying",
    "place_of",
    "run_about",
]
