//go:build cgo

package ibverbs_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// facts are expressions in C that must be the same with abi.h and with the real header.
func facts() []string {
	var list []string
	for _, s := range []string{
		"union ibv_gid", "struct ibv_device_attr", "struct ibv_odp_caps", "struct ibv_port_attr", "struct ibv_wc", "struct ibv_sge",
		"struct ibv_send_wr", "struct ibv_recv_wr", "struct ibv_global_route", "struct ibv_ah_attr", "struct ibv_qp_cap",
		"struct ibv_qp_attr", "struct ibv_context_ops", "struct ibv_device", "struct ibv_context", "struct ibv_pd", "struct ibv_mr",
		"struct ibv_comp_channel", "struct ibv_cq", "struct ibv_srq_attr", "struct ibv_srq_init_attr", "struct ibv_srq",
		"struct ibv_qp_init_attr", "struct ibv_qp", "struct ibv_async_event",
	} {
		list = append(list, "sizeof("+s+")")
	}
	members := map[string]string{
		"union ibv_gid": "raw global.subnet_prefix global.interface_id",
		"struct ibv_device_attr": "fw_ver node_guid vendor_id max_mr_size max_qp max_qp_wr max_sge max_cq max_cqe max_mr max_pd " +
			"max_qp_rd_atom max_qp_init_rd_atom atomic_cap max_srq max_srq_wr local_ca_ack_delay phys_port_cnt",
		"struct ibv_device_attr_ex": "orig_attr comp_mask odp_caps",
		"struct ibv_odp_caps":       "general_caps per_transport_caps per_transport_caps.rc_odp_caps",
		"struct ibv_port_attr":      "state max_mtu active_mtu gid_tbl_len max_msg_sz lid phys_state link_layer flags port_cap_flags2",
		"struct ibv_wc": "wr_id status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags pkey_index slid sl " +
			"dlid_path_bits",
		"struct ibv_sge": "addr length lkey",
		"struct ibv_send_wr": "wr_id next sg_list num_sge opcode send_flags imm_data wr.rdma.remote_addr wr.rdma.rkey " +
			"wr.atomic.remote_addr wr.atomic.compare_add wr.atomic.swap wr.atomic.rkey",
		"struct ibv_recv_wr":      "wr_id next sg_list num_sge",
		"struct ibv_global_route": "dgid flow_label sgid_index hop_limit traffic_class",
		"struct ibv_ah_attr":      "grh dlid sl src_path_bits static_rate is_global port_num",
		"struct ibv_qp_cap":       "max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data",
		"struct ibv_qp_attr": "qp_state cur_qp_state path_mtu qkey rq_psn sq_psn dest_qp_num qp_access_flags cap ah_attr pkey_index " +
			"max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num timeout retry_cnt rnr_retry rate_limit",
		"struct ibv_context_ops":   "poll_cq req_notify_cq post_srq_recv post_send post_recv",
		"struct ibv_device":        "name dev_name dev_path ibdev_path",
		"struct ibv_context":       "device ops cmd_fd async_fd num_comp_vectors abi_compat",
		"struct ibv_pd":            "context handle",
		"struct ibv_mr":            "context pd addr length handle lkey rkey",
		"struct ibv_comp_channel":  "context fd refcnt",
		"struct ibv_cq":            "context channel cq_context handle cqe comp_events_completed",
		"struct ibv_srq_init_attr": "srq_context attr attr.max_sge attr.srq_limit",
		"struct ibv_srq":           "context pd handle events_completed",
		"struct ibv_qp_init_attr":  "qp_context send_cq recv_cq srq cap qp_type sq_sig_all",
		"struct ibv_qp":            "context pd send_cq recv_cq srq handle qp_num state qp_type events_completed",
		"struct ibv_async_event":   "element event_type",
	}
	for _, s := range slices.Sorted(maps.Keys(members)) {
		for _, m := range strings.Fields(members[s]) {
			list = append(list, fmt.Sprintf("offsetof(%s, %s)", s, m))
		}
	}
	// The library's structure has grown at its front: what counts is the distance to its end.
	for _, m := range []string{"query_device_ex", "sz"} {
		list = append(list, fmt.Sprintf("offsetof(struct verbs_context, context) - offsetof(struct verbs_context, %s)", m))
	}
	return append(list, strings.Fields(`
		IBV_ATOMIC_HCA IBV_ATOMIC_GLOB IBV_PORT_ACTIVE IBV_LINK_LAYER_INFINIBAND IBV_LINK_LAYER_ETHERNET IBV_QPT_RC
		IBV_QPS_RESET IBV_QPS_INIT IBV_QPS_RTR IBV_QPS_RTS IBV_QPS_SQD IBV_QPS_SQE IBV_QPS_ERR IBV_ACCESS_LOCAL_WRITE
		IBV_ACCESS_REMOTE_WRITE IBV_ACCESS_REMOTE_READ IBV_ACCESS_REMOTE_ATOMIC IBV_ACCESS_ON_DEMAND IBV_WR_RDMA_WRITE
		IBV_WR_RDMA_WRITE_WITH_IMM IBV_WR_SEND IBV_WR_SEND_WITH_IMM IBV_WR_RDMA_READ IBV_WR_ATOMIC_CMP_AND_SWP
		IBV_WR_ATOMIC_FETCH_AND_ADD IBV_SEND_FENCE IBV_SEND_SIGNALED IBV_SEND_SOLICITED IBV_SEND_INLINE IBV_WC_SUCCESS
		IBV_WC_LOC_LEN_ERR IBV_WC_LOC_PROT_ERR IBV_WC_WR_FLUSH_ERR IBV_WC_REM_INV_REQ_ERR IBV_WC_REM_ACCESS_ERR IBV_WC_REM_OP_ERR
		IBV_WC_RETRY_EXC_ERR IBV_WC_RNR_RETRY_EXC_ERR IBV_WC_FATAL_ERR IBV_WC_RESP_TIMEOUT_ERR IBV_WC_GENERAL_ERR IBV_WC_SEND
		IBV_WC_RDMA_WRITE IBV_WC_RDMA_READ IBV_WC_COMP_SWAP IBV_WC_FETCH_ADD IBV_WC_RECV IBV_WC_RECV_RDMA_WITH_IMM
		IBV_WC_WITH_IMM IBV_QP_STATE IBV_QP_ACCESS_FLAGS IBV_QP_PKEY_INDEX IBV_QP_PORT IBV_QP_AV IBV_QP_PATH_MTU IBV_QP_TIMEOUT
		IBV_QP_RETRY_CNT IBV_QP_RNR_RETRY IBV_QP_RQ_PSN IBV_QP_MAX_QP_RD_ATOMIC IBV_QP_MIN_RNR_TIMER IBV_QP_SQ_PSN
		IBV_QP_MAX_DEST_RD_ATOMIC IBV_QP_CAP IBV_QP_DEST_QPN IBV_EVENT_QP_FATAL IBV_EVENT_QP_ACCESS_ERR IBV_EVENT_DEVICE_FATAL
		IBV_EVENT_PORT_ERR IBV_EVENT_QP_LAST_WQE_REACHED IBV_EVENT_GID_CHANGE IBV_ODP_SUPPORT IBV_ODP_SUPPORT_WRITE
		IBV_ODP_SUPPORT_READ IBV_ODP_SUPPORT_ATOMIC`)...)
}

// abi.h says what the installed header says: its facts, as numbers, are asserted with that.
func TestABI(t *testing.T) {
	const header = "/usr/include/infiniband/verbs.h"
	if _, err := os.Stat(header); err != nil {
		t.Skip("no " + header + " (libibverbs-dev) to compare with")
	}
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler cc")
	}
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	compile := func(name, source string, flags ...string) {
		file := filepath.Join(dir, name+".c")
		require.NoError(t, os.WriteFile(file, []byte(source), 0o600))
		out, err := exec.Command(cc, append([]string{"-D_GNU_SOURCE", "-o", filepath.Join(dir, name), file}, flags...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	program := "#include \"" + here + "/abi.h\"\n#include <stdio.h>\nint main(void) {\n"
	for _, fact := range facts() {
		program += fmt.Sprintf("  printf(\"%%lld\\n\", (long long)(%s));\n", fact)
	}
	compile("own", program+"}\n")
	out, err := exec.Command(filepath.Join(dir, "own")).Output()
	require.NoError(t, err)
	values := strings.Fields(string(out))
	require.Len(t, values, len(facts()))
	asserts := "#include <infiniband/verbs.h>\n#include <stddef.h>\n"
	for i, fact := range facts() {
		asserts += fmt.Sprintf("_Static_assert((long long)(%s) == %s, \"%s\");\n", fact, values[i], fact)
	}
	compile("real.o", asserts, "-c")
}
