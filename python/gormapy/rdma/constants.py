"""The constants of verbs."""

from enum import IntEnum, IntFlag

__all__ = ["Access", "QPState", "WCOpcode", "WCStatus"]


class Access(IntFlag):
    """The access that a memory region allows (ibv_access_flags). Remote writes and atomics need LOCAL_WRITE, too."""

    LOCAL_READ = 0
    LOCAL_WRITE = 1
    REMOTE_WRITE = 2
    REMOTE_READ = 4
    REMOTE_ATOMIC = 8
    ALL = 15


class QPState(IntEnum):
    """The state of a queue pair (ibv_qp_state)."""

    RESET = 0
    INIT = 1
    RTR = 2
    RTS = 3
    SQD = 4
    SQE = 5
    ERR = 6
    UNKNOWN = 7


class WCStatus(IntEnum):
    """The status of a work completion (ibv_wc_status)."""

    IBV_WC_SUCCESS = 0
    IBV_WC_LOC_LEN_ERR = 1
    IBV_WC_LOC_QP_OP_ERR = 2
    IBV_WC_LOC_EEC_OP_ERR = 3
    IBV_WC_LOC_PROT_ERR = 4
    IBV_WC_WR_FLUSH_ERR = 5
    IBV_WC_MW_BIND_ERR = 6
    IBV_WC_BAD_RESP_ERR = 7
    IBV_WC_LOC_ACCESS_ERR = 8
    IBV_WC_REM_INV_REQ_ERR = 9
    IBV_WC_REM_ACCESS_ERR = 10
    IBV_WC_REM_OP_ERR = 11
    IBV_WC_RETRY_EXC_ERR = 12
    IBV_WC_RNR_RETRY_EXC_ERR = 13
    IBV_WC_LOC_RDD_VIOL_ERR = 14
    IBV_WC_REM_INV_RD_REQ_ERR = 15
    IBV_WC_REM_ABORT_ERR = 16
    IBV_WC_INV_EECN_ERR = 17
    IBV_WC_INV_EEC_STATE_ERR = 18
    IBV_WC_FATAL_ERR = 19
    IBV_WC_RESP_TIMEOUT_ERR = 20
    IBV_WC_GENERAL_ERR = 21


class WCOpcode(IntEnum):
    """The opcode of a work completion (ibv_wc_opcode)."""

    IBV_WC_SEND = 0
    IBV_WC_RDMA_WRITE = 1
    IBV_WC_RDMA_READ = 2
    IBV_WC_COMP_SWAP = 3
    IBV_WC_FETCH_ADD = 4
    IBV_WC_RECV = 128
    IBV_WC_RECV_RDMA_WITH_IMM = 129


STATUS_NAMES = {int(status): status.name for status in WCStatus}

# The opcodes of work requests (ibv_wr_opcode), by their names in methods and errors.
WRITE, WRITE_IMM, SEND, SEND_IMM, READ, COMPARE_SWAP, FETCH_ADD = range(7)
OPERATIONS = ("write", "write_imm", "send", "send_imm", "read", "compare_swap", "fetch_add", "recv")  # -1: recv
