package rendezvous

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"gormapy/gocore/boot/store"
)

func TestFrames(t *testing.T) {
	f, err := readFrame(bytes.NewReader(putFrame("key-1", []byte{0, 1}).marshal()))
	require.NoError(t, err)
	key, value, err := f.put()
	require.NoError(t, err)
	assert.Equal(t, "key-1", key)
	assert.Equal(t, []byte{0, 1}, value)

	rank, key, err := getFrame(7, "k").get()
	require.NoError(t, err)
	assert.Equal(t, 7, rank)
	assert.Equal(t, "k", key)

	for _, code := range []int{0, 5, -1} {
		got, err := abortFrame(code).abort()
		require.NoError(t, err)
		assert.Equal(t, code, got)
	}
	e := store.Event{Kind: store.RankLost, Rank: 3, Code: -7, Why: "it has ended"}
	got, err := eventFrame(e).event()
	require.NoError(t, err)
	assert.Equal(t, e, got)

	nodes, err := tableFrame([]int{0, 5, -1}).table(3)
	require.NoError(t, err)
	assert.Equal(t, []int{0, 5, -1}, nodes)
	_, err = tableFrame([]int{0, 5, -1}).table(2)
	assert.Error(t, err)

	c := card{rank: 3, size: 4, node: unknownNode, instance: [16]byte{1, 2, 15: 9}}
	var back card
	require.NoError(t, back.unmarshal(c.marshal()))
	assert.Equal(t, c, back)
}

func TestFramesAreBounded(t *testing.T) {
	for _, b := range [][]byte{{0, 0, 0, 0, 1}, {255, 255, 255, 255, 1}, {1, 0, 0, 1, 1}, {9, 0, 0, 0, 1, 2}} {
		_, err := readFrame(bytes.NewReader(b))
		assert.Error(t, err, "%v", b)
	}
}

// FuzzFrames: nothing that arrives makes a decoder panic, and what it takes it gives back.
func FuzzFrames(f *testing.F) {
	f.Add(putFrame("key", []byte("value")).marshal())
	f.Add(getFrame(1, "key").marshal())
	f.Add(abortFrame(1).marshal())
	f.Add(eventFrame(store.Event{Kind: store.Lost, Rank: -1, Why: "x"}).marshal())
	f.Add(tableFrame([]int{1, 2}).marshal())
	f.Add([]byte{2, 0, 0, 0, 1, 200})
	f.Fuzz(func(t *testing.T, data []byte) {
		fr, err := readFrame(bytes.NewReader(data))
		if err != nil {
			return
		}
		assert.True(t, bytes.HasPrefix(data, fr.marshal()))
		if key, value, err := fr.put(); err == nil {
			assert.Equal(t, fr.body, putFrame(key, value).body)
		}
		if rank, key, err := fr.get(); err == nil {
			assert.Equal(t, fr.body, getFrame(rank, key).body)
		}
		if code, err := fr.abort(); err == nil {
			assert.Equal(t, fr.body, abortFrame(code).body)
		}
		if e, err := fr.event(); err == nil {
			assert.Equal(t, fr.body, eventFrame(e).body)
		}
		if nodes, err := fr.table(3); err == nil {
			assert.Equal(t, fr.body, tableFrame(nodes).body)
		}
		_ = new(card).unmarshal(fr.body)
	})
}

// FuzzServer feeds a server with a rank's frames of any kind, and checks that another rank
// is served.
func FuzzServer(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 2, 1, 0, 0, 0, 2})
	f.Add(append(putFrame("k", nil).marshal(), getFrame(9, "k").marshal()...))
	f.Add(append(frame{opNodes, nil}.marshal(), frame{opFinalize, nil}.marshal()...))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := newServer(3, sendLimit)
		ranks := map[int]*testRank{}
		for r := range 2 {
			ranks[r] = attach(t, s, r)
		}
		go func() { _, _ = ranks[0].conn.Write(data); ranks[0].conn.Close() }()
		<-ranks[0].served
		ranks[1].say(putFrame("good", []byte("untouched")))
		ranks[1].say(getFrame(1, "good"))
		f := ranks[1].hear()
		for f.op == opEvent {
			f = ranks[1].hear()
		}
		assert.Equal(t, frame{opValue, []byte("untouched")}, f)
		ranks[1].conn.Close()
		<-ranks[1].served
		s.mu.Lock()
		defer s.mu.Unlock()
		assert.Zero(t, s.inside)
		assert.Zero(t, s.asking)
		assert.Nil(t, s.timer)
	})
}
