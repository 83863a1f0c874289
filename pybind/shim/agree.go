package main

// What C and Go both have is declared twice: in gormapy.h, trace.h and check.h, and in Go. This file compares all of it when the
// extension is compiled: a size, an offset or a number that differs is an index out of range. header_test.go of
// pybind/core looks that nothing in the headers is left out here, and at what Go does not export.

/*
#include <stddef.h>
#include "trace.h"
#include "check.h"

_Static_assert(offsetof(gm_desc, target) == sizeof(gm_desc), "the first target follows at once (rma.Desc.Target)");
*/
import "C"

import (
	"unsafe"

	"gormapy/gocore/arena"
	"gormapy/gocore/check/events"
	"gormapy/gocore/coll"
	"gormapy/gocore/errs"
	"gormapy/gocore/fabric"
	"gormapy/gocore/job"
	"gormapy/gocore/mpi"
	"gormapy/gocore/mpiio"
	"gormapy/gocore/op"
	"gormapy/gocore/p2p"
	"gormapy/gocore/rma"
	"gormapy/gocore/trace"
)

// same has one element: its only index is the difference of two equal constants.
var same [1]struct{}

// Layouts: the size of each structure, and the offset and size of each field.
var (
	_ = same[unsafe.Sizeof(C.gm_status{})-unsafe.Sizeof(mpi.Status{})]
	_ = same[unsafe.Offsetof(C.gm_status{}.source)-unsafe.Offsetof(mpi.Status{}.Source)]
	_ = same[unsafe.Sizeof(C.gm_status{}.source)-unsafe.Sizeof(mpi.Status{}.Source)]
	_ = same[unsafe.Offsetof(C.gm_status{}.tag)-unsafe.Offsetof(mpi.Status{}.Tag)]
	_ = same[unsafe.Sizeof(C.gm_status{}.tag)-unsafe.Sizeof(mpi.Status{}.Tag)]
	_ = same[unsafe.Offsetof(C.gm_status{}.error)-unsafe.Offsetof(mpi.Status{}.Error)]
	_ = same[unsafe.Sizeof(C.gm_status{}.error)-unsafe.Sizeof(mpi.Status{}.Error)]
	_ = same[unsafe.Offsetof(C.gm_status{}.cancelled)-unsafe.Offsetof(mpi.Status{}.Cancelled)]
	_ = same[unsafe.Sizeof(C.gm_status{}.cancelled)-unsafe.Sizeof(mpi.Status{}.Cancelled)]
	_ = same[unsafe.Offsetof(C.gm_status{}.bytes)-unsafe.Offsetof(mpi.Status{}.Bytes)]
	_ = same[unsafe.Sizeof(C.gm_status{}.bytes)-unsafe.Sizeof(mpi.Status{}.Bytes)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_comm_shape{})-unsafe.Sizeof(mpi.CommShape{})]
	_ = same[unsafe.Offsetof(C.gm_comm_shape{}.size)-unsafe.Offsetof(mpi.CommShape{}.Size)]
	_ = same[unsafe.Sizeof(C.gm_comm_shape{}.size)-unsafe.Sizeof(mpi.CommShape{}.Size)]
	_ = same[unsafe.Offsetof(C.gm_comm_shape{}.rank)-unsafe.Offsetof(mpi.CommShape{}.Rank)]
	_ = same[unsafe.Sizeof(C.gm_comm_shape{}.rank)-unsafe.Sizeof(mpi.CommShape{}.Rank)]
	_ = same[unsafe.Offsetof(C.gm_comm_shape{}.head)-unsafe.Offsetof(mpi.CommShape{}.Head)]
	_ = same[unsafe.Sizeof(C.gm_comm_shape{}.head)-unsafe.Sizeof(mpi.CommShape{}.Head)]
	_ = same[unsafe.Offsetof(C.gm_comm_shape{}.part)-unsafe.Offsetof(mpi.CommShape{}.Part)]
	_ = same[unsafe.Sizeof(C.gm_comm_shape{}.part)-unsafe.Sizeof(mpi.CommShape{}.Part)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_heads{})-unsafe.Sizeof(mpi.Heads{})]
	_ = same[unsafe.Offsetof(C.gm_heads{}.comm)-unsafe.Offsetof(mpi.Heads{}.Comm)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.comm)-unsafe.Sizeof(mpi.Heads{}.Comm)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.send)-unsafe.Offsetof(mpi.Heads{}.Send)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.send)-unsafe.Sizeof(mpi.Heads{}.Send)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.recv)-unsafe.Offsetof(mpi.Heads{}.Recv)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.recv)-unsafe.Sizeof(mpi.Heads{}.Recv)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.sent)-unsafe.Offsetof(mpi.Heads{}.Sent)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.sent)-unsafe.Sizeof(mpi.Heads{}.Sent)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.received)-unsafe.Offsetof(mpi.Heads{}.Received)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.received)-unsafe.Sizeof(mpi.Heads{}.Received)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.bytes)-unsafe.Offsetof(mpi.Heads{}.Bytes)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.bytes)-unsafe.Sizeof(mpi.Heads{}.Bytes)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.root)-unsafe.Offsetof(mpi.Heads{}.Root)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.root)-unsafe.Sizeof(mpi.Heads{}.Root)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.generation)-unsafe.Offsetof(mpi.Heads{}.Generation)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.generation)-unsafe.Sizeof(mpi.Heads{}.Generation)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.number)-unsafe.Offsetof(mpi.Heads{}.Number)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.number)-unsafe.Sizeof(mpi.Heads{}.Number)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.kind)-unsafe.Offsetof(mpi.Heads{}.Kind)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.kind)-unsafe.Sizeof(mpi.Heads{}.Kind)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.more)-unsafe.Offsetof(mpi.Heads{}.More)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.more)-unsafe.Sizeof(mpi.Heads{}.More)]
	_ = same[unsafe.Offsetof(C.gm_heads{}.reduce)-unsafe.Offsetof(mpi.Heads{}.Reduce)]
	_ = same[unsafe.Sizeof(C.gm_heads{}.reduce)-unsafe.Sizeof(mpi.Heads{}.Reduce)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_type_shape{})-unsafe.Sizeof(mpi.TypeShape{})]
	_ = same[unsafe.Offsetof(C.gm_type_shape{}.size)-unsafe.Offsetof(mpi.TypeShape{}.Size)]
	_ = same[unsafe.Sizeof(C.gm_type_shape{}.size)-unsafe.Sizeof(mpi.TypeShape{}.Size)]
	_ = same[unsafe.Offsetof(C.gm_type_shape{}.extent)-unsafe.Offsetof(mpi.TypeShape{}.Extent)]
	_ = same[unsafe.Sizeof(C.gm_type_shape{}.extent)-unsafe.Sizeof(mpi.TypeShape{}.Extent)]
	_ = same[unsafe.Offsetof(C.gm_type_shape{}.lb)-unsafe.Offsetof(mpi.TypeShape{}.LB)]
	_ = same[unsafe.Sizeof(C.gm_type_shape{}.lb)-unsafe.Sizeof(mpi.TypeShape{}.LB)]
	_ = same[unsafe.Offsetof(C.gm_type_shape{}.true_lb)-unsafe.Offsetof(mpi.TypeShape{}.TrueLB)]
	_ = same[unsafe.Sizeof(C.gm_type_shape{}.true_lb)-unsafe.Sizeof(mpi.TypeShape{}.TrueLB)]
	_ = same[unsafe.Offsetof(C.gm_type_shape{}.true_extent)-unsafe.Offsetof(mpi.TypeShape{}.TrueExtent)]
	_ = same[unsafe.Sizeof(C.gm_type_shape{}.true_extent)-unsafe.Sizeof(mpi.TypeShape{}.TrueExtent)]
	_ = same[unsafe.Offsetof(C.gm_type_shape{}.one_run)-unsafe.Offsetof(mpi.TypeShape{}.OneRun)]
	_ = same[unsafe.Sizeof(C.gm_type_shape{}.one_run)-unsafe.Sizeof(mpi.TypeShape{}.OneRun)]
	_ = same[unsafe.Offsetof(C.gm_type_shape{}.word)-unsafe.Offsetof(mpi.TypeShape{}.Word)]
	_ = same[unsafe.Sizeof(C.gm_type_shape{}.word)-unsafe.Sizeof(mpi.TypeShape{}.Word)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_operand{})-unsafe.Sizeof(mpi.Operand{})]
	_ = same[unsafe.Offsetof(C.gm_operand{}.addr)-unsafe.Offsetof(mpi.Operand{}.Addr)]
	_ = same[unsafe.Sizeof(C.gm_operand{}.addr)-unsafe.Sizeof(mpi.Operand{}.Addr)]
	_ = same[unsafe.Offsetof(C.gm_operand{}.count)-unsafe.Offsetof(mpi.Operand{}.Count)]
	_ = same[unsafe.Sizeof(C.gm_operand{}.count)-unsafe.Sizeof(mpi.Operand{}.Count)]
	_ = same[unsafe.Offsetof(C.gm_operand{}.datatype)-unsafe.Offsetof(mpi.Operand{}.Type)]
	_ = same[unsafe.Sizeof(C.gm_operand{}.datatype)-unsafe.Sizeof(mpi.Operand{}.Type)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_target_spec{})-unsafe.Sizeof(mpi.TargetSpec{})]
	_ = same[unsafe.Offsetof(C.gm_target_spec{}.disp)-unsafe.Offsetof(mpi.TargetSpec{}.Disp)]
	_ = same[unsafe.Sizeof(C.gm_target_spec{}.disp)-unsafe.Sizeof(mpi.TargetSpec{}.Disp)]
	_ = same[unsafe.Offsetof(C.gm_target_spec{}.count)-unsafe.Offsetof(mpi.TargetSpec{}.Count)]
	_ = same[unsafe.Sizeof(C.gm_target_spec{}.count)-unsafe.Sizeof(mpi.TargetSpec{}.Count)]
	_ = same[unsafe.Offsetof(C.gm_target_spec{}.datatype)-unsafe.Offsetof(mpi.TargetSpec{}.Type)]
	_ = same[unsafe.Sizeof(C.gm_target_spec{}.datatype)-unsafe.Sizeof(mpi.TargetSpec{}.Type)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_access{})-unsafe.Sizeof(mpi.Access{})]
	_ = same[unsafe.Offsetof(C.gm_access{}.kind)-unsafe.Offsetof(mpi.Access{}.Kind)]
	_ = same[unsafe.Sizeof(C.gm_access{}.kind)-unsafe.Sizeof(mpi.Access{}.Kind)]
	_ = same[unsafe.Offsetof(C.gm_access{}.win)-unsafe.Offsetof(mpi.Access{}.Win)]
	_ = same[unsafe.Sizeof(C.gm_access{}.win)-unsafe.Sizeof(mpi.Access{}.Win)]
	_ = same[unsafe.Offsetof(C.gm_access{}.origin)-unsafe.Offsetof(mpi.Access{}.Origin)]
	_ = same[unsafe.Sizeof(C.gm_access{}.origin)-unsafe.Sizeof(mpi.Access{}.Origin)]
	_ = same[unsafe.Offsetof(C.gm_access{}.result)-unsafe.Offsetof(mpi.Access{}.Result)]
	_ = same[unsafe.Sizeof(C.gm_access{}.result)-unsafe.Sizeof(mpi.Access{}.Result)]
	_ = same[unsafe.Offsetof(C.gm_access{}.rank)-unsafe.Offsetof(mpi.Access{}.Rank)]
	_ = same[unsafe.Sizeof(C.gm_access{}.rank)-unsafe.Sizeof(mpi.Access{}.Rank)]
	_ = same[unsafe.Offsetof(C.gm_access{}.target)-unsafe.Offsetof(mpi.Access{}.Target)]
	_ = same[unsafe.Sizeof(C.gm_access{}.target)-unsafe.Sizeof(mpi.Access{}.Target)]
	_ = same[unsafe.Offsetof(C.gm_access{}.op)-unsafe.Offsetof(mpi.Access{}.Op)]
	_ = same[unsafe.Sizeof(C.gm_access{}.op)-unsafe.Sizeof(mpi.Access{}.Op)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_target{})-unsafe.Sizeof(rma.Target{})]
	_ = same[unsafe.Offsetof(C.gm_target{}.base)-unsafe.Offsetof(rma.Target{}.Base)]
	_ = same[unsafe.Sizeof(C.gm_target{}.base)-unsafe.Sizeof(rma.Target{}.Base)]
	_ = same[unsafe.Offsetof(C.gm_target{}.bytes)-unsafe.Offsetof(rma.Target{}.Bytes)]
	_ = same[unsafe.Sizeof(C.gm_target{}.bytes)-unsafe.Sizeof(rma.Target{}.Bytes)]
	_ = same[unsafe.Offsetof(C.gm_target{}.unit)-unsafe.Offsetof(rma.Target{}.Unit)]
	_ = same[unsafe.Sizeof(C.gm_target{}.unit)-unsafe.Sizeof(rma.Target{}.Unit)]
	_ = same[unsafe.Offsetof(C.gm_target{}.open)-unsafe.Offsetof(rma.Target{}.Open)]
	_ = same[unsafe.Sizeof(C.gm_target{}.open)-unsafe.Sizeof(rma.Target{}.Open)]
	_ = same[unsafe.Offsetof(C.gm_target{}.flags)-unsafe.Offsetof(rma.Target{}.Flags)]
	_ = same[unsafe.Sizeof(C.gm_target{}.flags)-unsafe.Sizeof(rma.Target{}.Flags)]
	_ = same[unsafe.Offsetof(C.gm_target{}.remote)-unsafe.Offsetof(rma.Target{}.Remote)]
	_ = same[unsafe.Sizeof(C.gm_target{}.remote)-unsafe.Sizeof(rma.Target{}.Remote)]
	_ = same[unsafe.Offsetof(C.gm_target{}.pid)-unsafe.Offsetof(rma.Target{}.PID)]
	_ = same[unsafe.Sizeof(C.gm_target{}.pid)-unsafe.Sizeof(rma.Target{}.PID)]
	_ = same[unsafe.Offsetof(C.gm_target{}.ended)-unsafe.Offsetof(rma.Target{}.Ended)]
	_ = same[unsafe.Sizeof(C.gm_target{}.ended)-unsafe.Sizeof(rma.Target{}.Ended)]
	_ = same[unsafe.Offsetof(C.gm_target{}.notify)-unsafe.Offsetof(rma.Target{}.Notify)]
	_ = same[unsafe.Sizeof(C.gm_target{}.notify)-unsafe.Sizeof(rma.Target{}.Notify)]
	_ = same[unsafe.Offsetof(C.gm_target{}.bundle)-unsafe.Offsetof(rma.Target{}.Bundle)]
	_ = same[unsafe.Sizeof(C.gm_target{}.bundle)-unsafe.Sizeof(rma.Target{}.Bundle)]
	_ = same[unsafe.Offsetof(C.gm_target{}.turn)-unsafe.Offsetof(rma.Target{}.Turn)]
	_ = same[unsafe.Sizeof(C.gm_target{}.turn)-unsafe.Sizeof(rma.Target{}.Turn)]
	_ = same[unsafe.Sizeof(C.gm_notify_box{})-unsafe.Sizeof(rma.NotifyBox{})]
	_ = same[unsafe.Offsetof(C.gm_notify_box{}.counters)-unsafe.Offsetof(rma.NotifyBox{}.Counters)]
	_ = same[unsafe.Sizeof(C.gm_notify_box{}.counters)-unsafe.Sizeof(rma.NotifyBox{}.Counters)]
	_ = same[unsafe.Offsetof(C.gm_notify_box{}.waiting)-unsafe.Offsetof(rma.NotifyBox{}.Waiting)]
	_ = same[unsafe.Sizeof(C.gm_notify_box{}.waiting)-unsafe.Sizeof(rma.NotifyBox{}.Waiting)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_run{})-unsafe.Sizeof(fabric.Run{})]
	_ = same[unsafe.Offsetof(C.gm_run{}.at)-unsafe.Offsetof(fabric.Run{}.Addr)]
	_ = same[unsafe.Sizeof(C.gm_run{}.at)-unsafe.Sizeof(fabric.Run{}.Addr)]
	_ = same[unsafe.Offsetof(C.gm_run{}.bytes)-unsafe.Offsetof(fabric.Run{}.N)]
	_ = same[unsafe.Sizeof(C.gm_run{}.bytes)-unsafe.Sizeof(fabric.Run{}.N)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_bundle{})-unsafe.Sizeof(rma.Bundle{})]
	_ = same[unsafe.Offsetof(C.gm_bundle{}.lock)-unsafe.Offsetof(rma.Bundle{}.Lock)]
	_ = same[unsafe.Sizeof(C.gm_bundle{}.lock)-unsafe.Sizeof(rma.Bundle{}.Lock)]
	_ = same[unsafe.Offsetof(C.gm_bundle{}.used)-unsafe.Offsetof(rma.Bundle{}.Used)]
	_ = same[unsafe.Sizeof(C.gm_bundle{}.used)-unsafe.Sizeof(rma.Bundle{}.Used)]
	_ = same[unsafe.Offsetof(C.gm_bundle{}.bytes)-unsafe.Offsetof(rma.Bundle{}.Bytes)]
	_ = same[unsafe.Sizeof(C.gm_bundle{}.bytes)-unsafe.Sizeof(rma.Bundle{}.Bytes)]
	_ = same[unsafe.Offsetof(C.gm_bundle{}.written)-unsafe.Offsetof(rma.Bundle{}.Written)]
	_ = same[unsafe.Sizeof(C.gm_bundle{}.written)-unsafe.Sizeof(rma.Bundle{}.Written)]
	_ = same[unsafe.Offsetof(C.gm_bundle{}.number)-unsafe.Offsetof(rma.Bundle{}.Number)]
	_ = same[unsafe.Sizeof(C.gm_bundle{}.number)-unsafe.Sizeof(rma.Bundle{}.Number)]
	_ = same[unsafe.Offsetof(C.gm_bundle{}.runs)-unsafe.Offsetof(rma.Bundle{}.Runs)]
	_ = same[unsafe.Sizeof(C.gm_bundle{}.runs)-unsafe.Sizeof(rma.Bundle{}.Runs)]
	_ = same[unsafe.Offsetof(C.gm_bundle{}.data)-unsafe.Offsetof(rma.Bundle{}.Data)]
	_ = same[unsafe.Sizeof(C.gm_bundle{}.data)-unsafe.Sizeof(rma.Bundle{}.Data)]
)

var (
	_ = same[unsafe.Sizeof(C.gm_desc{})-unsafe.Sizeof(rma.Desc{})]
	_ = same[unsafe.Offsetof(C.gm_desc{}.handle)-unsafe.Offsetof(rma.Desc{}.Handle)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.handle)-unsafe.Sizeof(rma.Desc{}.Handle)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.size)-unsafe.Offsetof(rma.Desc{}.Size)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.size)-unsafe.Sizeof(rma.Desc{}.Size)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.flags)-unsafe.Offsetof(rma.Desc{}.Flags)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.flags)-unsafe.Sizeof(rma.Desc{}.Flags)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.open)-unsafe.Offsetof(rma.Desc{}.Open)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.open)-unsafe.Sizeof(rma.Desc{}.Open)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.turn)-unsafe.Offsetof(rma.Desc{}.Turn)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.turn)-unsafe.Sizeof(rma.Desc{}.Turn)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.failed)-unsafe.Offsetof(rma.Desc{}.Failed)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.failed)-unsafe.Sizeof(rma.Desc{}.Failed)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.bundles)-unsafe.Offsetof(rma.Desc{}.Bundles)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.bundles)-unsafe.Sizeof(rma.Desc{}.Bundles)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.begun)-unsafe.Offsetof(rma.Desc{}.Begun)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.begun)-unsafe.Sizeof(rma.Desc{}.Begun)]
	_ = same[unsafe.Offsetof(C.gm_desc{}.watched)-unsafe.Offsetof(rma.Desc{}.Watched)]
	_ = same[unsafe.Sizeof(C.gm_desc{}.watched)-unsafe.Sizeof(rma.Desc{}.Watched)]
)

var (
	_ = same[unsafe.Sizeof(C.trace_record{})-unsafe.Sizeof(trace.Record{})]
	_ = same[unsafe.Offsetof(C.trace_record{}.state)-unsafe.Offsetof(trace.Record{}.State)]
	_ = same[unsafe.Sizeof(C.trace_record{}.state)-unsafe.Sizeof(trace.Record{}.State)]
	_ = same[unsafe.Offsetof(C.trace_record{}.kind)-unsafe.Offsetof(trace.Record{}.Kind)]
	_ = same[unsafe.Sizeof(C.trace_record{}.kind)-unsafe.Sizeof(trace.Record{}.Kind)]
	_ = same[unsafe.Offsetof(C.trace_record{}.name)-unsafe.Offsetof(trace.Record{}.Name)]
	_ = same[unsafe.Sizeof(C.trace_record{}.name)-unsafe.Sizeof(trace.Record{}.Name)]
	_ = same[unsafe.Offsetof(C.trace_record{}.begin)-unsafe.Offsetof(trace.Record{}.Begin)]
	_ = same[unsafe.Sizeof(C.trace_record{}.begin)-unsafe.Sizeof(trace.Record{}.Begin)]
	_ = same[unsafe.Offsetof(C.trace_record{}.end)-unsafe.Offsetof(trace.Record{}.End)]
	_ = same[unsafe.Sizeof(C.trace_record{}.end)-unsafe.Sizeof(trace.Record{}.End)]
	_ = same[unsafe.Offsetof(C.trace_record{}.thread)-unsafe.Offsetof(trace.Record{}.Thread)]
	_ = same[unsafe.Sizeof(C.trace_record{}.thread)-unsafe.Sizeof(trace.Record{}.Thread)]
	_ = same[unsafe.Offsetof(C.trace_record{}.peer)-unsafe.Offsetof(trace.Record{}.Peer)]
	_ = same[unsafe.Sizeof(C.trace_record{}.peer)-unsafe.Sizeof(trace.Record{}.Peer)]
	_ = same[unsafe.Offsetof(C.trace_record{}.object)-unsafe.Offsetof(trace.Record{}.Object)]
	_ = same[unsafe.Sizeof(C.trace_record{}.object)-unsafe.Sizeof(trace.Record{}.Object)]
	_ = same[unsafe.Offsetof(C.trace_record{}.bytes)-unsafe.Offsetof(trace.Record{}.Bytes)]
	_ = same[unsafe.Sizeof(C.trace_record{}.bytes)-unsafe.Sizeof(trace.Record{}.Bytes)]
	_ = same[unsafe.Offsetof(C.trace_record{}.disp)-unsafe.Offsetof(trace.Record{}.Disp)]
	_ = same[unsafe.Sizeof(C.trace_record{}.disp)-unsafe.Sizeof(trace.Record{}.Disp)]
	_ = same[unsafe.Offsetof(C.trace_record{}.tag)-unsafe.Offsetof(trace.Record{}.Tag)]
	_ = same[unsafe.Sizeof(C.trace_record{}.tag)-unsafe.Sizeof(trace.Record{}.Tag)]
	_ = same[unsafe.Offsetof(C.trace_record{}.op)-unsafe.Offsetof(trace.Record{}.Op)]
	_ = same[unsafe.Sizeof(C.trace_record{}.op)-unsafe.Sizeof(trace.Record{}.Op)]
)

var (
	_ = same[unsafe.Sizeof(C.trace_head{})-unsafe.Sizeof(trace.Head{})]
	_ = same[unsafe.Offsetof(C.trace_head{}.magic)-unsafe.Offsetof(trace.Head{}.Magic)]
	_ = same[unsafe.Sizeof(C.trace_head{}.magic)-unsafe.Sizeof(trace.Head{}.Magic)]
	_ = same[unsafe.Offsetof(C.trace_head{}.version)-unsafe.Offsetof(trace.Head{}.Version)]
	_ = same[unsafe.Sizeof(C.trace_head{}.version)-unsafe.Sizeof(trace.Head{}.Version)]
	_ = same[unsafe.Offsetof(C.trace_head{}.clock)-unsafe.Offsetof(trace.Head{}.Clock)]
	_ = same[unsafe.Sizeof(C.trace_head{}.clock)-unsafe.Sizeof(trace.Head{}.Clock)]
	_ = same[unsafe.Offsetof(C.trace_head{}.capacity)-unsafe.Offsetof(trace.Head{}.Capacity)]
	_ = same[unsafe.Sizeof(C.trace_head{}.capacity)-unsafe.Sizeof(trace.Head{}.Capacity)]
	_ = same[unsafe.Offsetof(C.trace_head{}.rank)-unsafe.Offsetof(trace.Head{}.Rank)]
	_ = same[unsafe.Sizeof(C.trace_head{}.rank)-unsafe.Sizeof(trace.Head{}.Rank)]
	_ = same[unsafe.Offsetof(C.trace_head{}.size)-unsafe.Offsetof(trace.Head{}.Size)]
	_ = same[unsafe.Sizeof(C.trace_head{}.size)-unsafe.Sizeof(trace.Head{}.Size)]
	_ = same[unsafe.Offsetof(C.trace_head{}.pid)-unsafe.Offsetof(trace.Head{}.PID)]
	_ = same[unsafe.Sizeof(C.trace_head{}.pid)-unsafe.Sizeof(trace.Head{}.PID)]
	_ = same[unsafe.Offsetof(C.trace_head{}.name_len)-unsafe.Offsetof(trace.Head{}.NameLen)]
	_ = same[unsafe.Sizeof(C.trace_head{}.name_len)-unsafe.Sizeof(trace.Head{}.NameLen)]
	_ = same[unsafe.Offsetof(C.trace_head{}.tick0)-unsafe.Offsetof(trace.Head{}.Tick0)]
	_ = same[unsafe.Sizeof(C.trace_head{}.tick0)-unsafe.Sizeof(trace.Head{}.Tick0)]
	_ = same[unsafe.Offsetof(C.trace_head{}.nano0)-unsafe.Offsetof(trace.Head{}.Nano0)]
	_ = same[unsafe.Sizeof(C.trace_head{}.nano0)-unsafe.Sizeof(trace.Head{}.Nano0)]
	_ = same[unsafe.Offsetof(C.trace_head{}.tick1)-unsafe.Offsetof(trace.Head{}.Tick1)]
	_ = same[unsafe.Sizeof(C.trace_head{}.tick1)-unsafe.Sizeof(trace.Head{}.Tick1)]
	_ = same[unsafe.Offsetof(C.trace_head{}.nano1)-unsafe.Offsetof(trace.Head{}.Nano1)]
	_ = same[unsafe.Sizeof(C.trace_head{}.nano1)-unsafe.Sizeof(trace.Head{}.Nano1)]
	_ = same[unsafe.Offsetof(C.trace_head{}.next)-unsafe.Offsetof(trace.Head{}.Next)]
	_ = same[unsafe.Sizeof(C.trace_head{}.next)-unsafe.Sizeof(trace.Head{}.Next)]
	_ = same[unsafe.Offsetof(C.trace_head{}.threads)-unsafe.Offsetof(trace.Head{}.Threads)]
	_ = same[unsafe.Sizeof(C.trace_head{}.threads)-unsafe.Sizeof(trace.Head{}.Threads)]
	_ = same[unsafe.Offsetof(C.trace_head{}.first)-unsafe.Offsetof(trace.Head{}.First)]
	_ = same[unsafe.Sizeof(C.trace_head{}.first)-unsafe.Sizeof(trace.Head{}.First)]
)

// What C reads through a pointer that it was given is 4 bytes wide.
var (
	_ *uint32 = rma.Target{}.Ended
	_ uint32  = job.Rank{}.Sleepers                                   // gm_word_sleepers
	_         = same[unsafe.Sizeof(C.int(0))-unsafe.Sizeof(int32(0))] // indices and codes of gm_some
)

// Descriptors of windows.
var (
	_ = same[C.GM_DESC_COMPLETE_ON_RETURN-rma.DescCompleteOnReturn]
	_ = same[C.GM_TARGET_LOCKED-rma.TargetLocked]
	_ = same[C.GM_TARGET_STARTED-rma.TargetStarted]
	_ = same[C.GM_TARGET_ATOMIC-rma.TargetAtomic]
	_ = same[C.GM_TARGET_COPY-rma.TargetCopy]
	_ = same[C.GM_TARGET_MESSAGES-rma.TargetMessages]
	_ = same[C.GM_SHORT_PUT-rma.ShortPut]
	_ = same[C.GM_SHORT_UPDATE-rma.ShortUpdate]
	_ = same[C.GM_BUNDLE_RUNS-rma.BundleRuns]
	_ = same[C.GM_BUNDLE_BYTES-rma.BundleBytes]
	_ = same[C.GM_BUNDLED_PUT-rma.BundledPut]
	_ = same[C.GM_NOTIFY_SLOTS-rma.NotifySlots]
	_ = same[C.GM_EAGER_LIMIT-p2p.EagerLimit]
)

var (
	_ = same[unsafe.Sizeof(C.gm_chunk{})-unsafe.Sizeof(arena.ChunkCopy{})]
	_ = same[unsafe.Offsetof(C.gm_chunk{}.addr)-unsafe.Offsetof(arena.ChunkCopy{}.Addr)]
	_ = same[unsafe.Sizeof(C.gm_chunk{}.addr)-unsafe.Sizeof(arena.ChunkCopy{}.Addr)]
	_ = same[unsafe.Offsetof(C.gm_chunk{}.bytes)-unsafe.Offsetof(arena.ChunkCopy{}.Bytes)]
	_ = same[unsafe.Sizeof(C.gm_chunk{}.bytes)-unsafe.Sizeof(arena.ChunkCopy{}.Bytes)]
	_ = same[unsafe.Offsetof(C.gm_chunk{}.fd)-unsafe.Offsetof(arena.ChunkCopy{}.FD)]
	_ = same[unsafe.Sizeof(C.gm_chunk{}.fd)-unsafe.Sizeof(arena.ChunkCopy{}.FD)]
	_ = same[unsafe.Offsetof(C.gm_chunk{}.copy)-unsafe.Offsetof(arena.ChunkCopy{}.Copy)]
	_ = same[unsafe.Sizeof(C.gm_chunk{}.copy)-unsafe.Sizeof(arena.ChunkCopy{}.Copy)]
	_ = same[unsafe.Offsetof(C.gm_chunk{}.live)-unsafe.Offsetof(arena.ChunkCopy{}.Live)]
	_ = same[unsafe.Sizeof(C.gm_chunk{}.live)-unsafe.Sizeof(arena.ChunkCopy{}.Live)]
	_ = same[C.GM_MAX_CHUNKS-arena.MaxChunks]
)

// Codes.
var (
	_ = same[C.GM_INTERRUPTED-mpi.Interrupted]
	_ = same[C.GM_ERR_BUFFER-errs.Buffer]
	_ = same[C.GM_ERR_RANK-errs.Rank]
	_ = same[C.GM_ERR_REQUEST-errs.Request]
	_ = same[C.GM_ERR_OTHER-errs.Other]
	_ = same[C.GM_ERR_INTERN-errs.Intern]
	_ = same[C.GM_ERR_PENDING-errs.Pending]
	_ = same[C.GM_ERR_PROC_FAILED_PENDING-errs.ProcFailedPending]
)

// Ranks, tags, addresses, operations, locks.
var (
	_ = same[C.GM_ANY_SOURCE-mpi.AnySource]
	_ = same[C.GM_ANY_TAG-mpi.AnyTag]
	_ = same[C.GM_PROC_NULL-mpi.ProcNull]
	_ = same[C.GM_UNDEFINED-mpi.Undefined]
	_ = same[C.GM_IN_PLACE-mpi.InPlace]
	_ = same[C.GM_REQUEST_SENT-mpi.RequestSent]
	_ = same[C.GM_OP_SUM-op.Sum]
	_ = same[C.GM_OP_NO_OP-op.NoOp]
	_ = same[C.GM_LOCK_EXCLUSIVE-mpi.LockExclusive]
	_ = same[C.GM_FILE_WRITE-mpiio.Write]
	_ = same[C.GM_FILE_ALL-mpiio.All]
	_ = same[C.GM_FILE_OWN-mpiio.Individual]
	_ = same[C.GM_FILE_SHARED-mpiio.Shared]
	_ = same[C.GM_SEEK_SET-mpiio.SeekSet]
)

// Kinds of calls.
var (
	_ = same[C.GM_SEND-mpi.KindSend]
	_ = same[C.GM_SSEND-mpi.KindSsend]
	_ = same[C.GM_RECV-mpi.KindRecv]
	_ = same[C.GM_BSEND-mpi.KindBsend]
	_ = same[C.GM_RSEND-mpi.KindRsend]
	_ = same[C.GM_PUT-mpi.KindPut]
	_ = same[C.GM_GET-mpi.KindGet]
	_ = same[C.GM_ACC-mpi.KindAcc]
	_ = same[C.GM_GET_ACC-mpi.KindGetAcc]
	_ = same[C.GM_FETCH_OP-mpi.KindFetchOp]
	_ = same[C.GM_BARRIER-coll.KindBarrier]
	_ = same[C.GM_BCAST-coll.KindBcast]
	_ = same[C.GM_GATHER-coll.KindGather]
	_ = same[C.GM_SCATTER-coll.KindScatter]
	_ = same[C.GM_ALLGATHER-coll.KindAllgather]
	_ = same[C.GM_ALLTOALL-coll.KindAlltoall]
	_ = same[C.GM_REDUCE-coll.KindReduce]
	_ = same[C.GM_ALLREDUCE-coll.KindAllreduce]
	_ = same[C.GM_REDUCE_SCATTER_BLOCK-coll.KindReduceScatterBlock]
	_ = same[C.GM_SCAN-coll.KindScan]
	_ = same[C.GM_EXSCAN-coll.KindExscan]
	_ = same[C.GM_GATHERV-coll.KindGatherv]
	_ = same[C.GM_SCATTERV-coll.KindScatterv]
	_ = same[C.GM_ALLGATHERV-coll.KindAllgatherv]
	_ = same[C.GM_ALLTOALLV-coll.KindAlltoallv]
	_ = same[C.GM_IBARRIER-coll.KindIbarrier]
	_ = same[C.GM_ALLTOALLW-coll.KindAlltoallw]
	_ = same[C.GM_NEIGHBOR_ALLGATHER-coll.KindNeighborAllgather]
	_ = same[C.GM_NEIGHBOR_ALLTOALL-coll.KindNeighborAlltoall]
)

// Datatypes.
var (
	_ = same[C.GM_TYPE_DUP-mpi.MakeDup]
	_ = same[C.GM_TYPE_CONTIGUOUS-mpi.MakeContiguous]
	_ = same[C.GM_TYPE_VECTOR-mpi.MakeVector]
	_ = same[C.GM_TYPE_HVECTOR-mpi.MakeHvector]
	_ = same[C.GM_TYPE_RESIZED-mpi.MakeResized]
	_ = same[C.GM_TYPE_INDEXED-mpi.MakeIndexed]
	_ = same[C.GM_TYPE_HINDEXED-mpi.MakeHindexed]
	_ = same[C.GM_TYPE_INDEXED_BLOCK-mpi.MakeIndexedBlock]
	_ = same[C.GM_TYPE_HINDEXED_BLOCK-mpi.MakeHindexedBlock]
	_ = same[C.GM_TYPE_SUBARRAY-mpi.MakeSubarray]
	_ = same[C.GM_TYPE_STRUCT-mpi.MakeStruct]
)

// Heads of objects.
var (
	_ = same[C.GM_HEAD_NOTE-coll.HeadNote]
	_ = same[C.GM_HEAD_DATA-coll.HeadData]
	_ = same[C.GM_PLAIN_BIT-mpi.PlainBit]
	_ = same[C.GM_REDUCE_BIT-mpi.ReduceBit]
)

// Records.
var (
	_ = same[C.TRACE_CALL-trace.KindCall]
	_ = same[C.TRACE_CALL_COMM-trace.KindCallComm]
	_ = same[C.TRACE_CALL_WIN-trace.KindCallWin]
	_ = same[C.TRACE_DEFINITIONS-trace.KindComm]
	_ = same[C.TRACE_STATE_OPEN-trace.StateOpen]
	_ = same[C.TRACE_STATE_DONE-trace.StateDone]
	_ = same[C.TRACE_CLOCK_TICKS-trace.ClockTSC]
)

var (
	_ = same[unsafe.Sizeof(C.check_head{})-unsafe.Sizeof(events.Head{})]
	_ = same[unsafe.Offsetof(C.check_head{}.capacity)-unsafe.Offsetof(events.Head{}.Capacity)]
	_ = same[unsafe.Offsetof(C.check_head{}.written)-unsafe.Offsetof(events.Head{}.Written)]
	_ = same[unsafe.Offsetof(C.check_head{}.lock)-unsafe.Offsetof(events.Head{}.Lock)]
	_ = same[unsafe.Offsetof(C.check_head{}.read)-unsafe.Offsetof(events.Head{}.Read)]
	_ = same[C.CHECK_DATA_AT-events.DataAt]
	_ = same[C.CHECK_HEAD_BYTES-events.HeadBytes]
	_ = same[C.CHECK_GONE-int(events.Gone)]
)
