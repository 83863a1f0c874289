package handshake

import "io"

// Call begins the initiator's side over a connection, and waits for the challenge, which proves that
// the acceptor knows the secret. An
// error of the connection is returned as it is.
func (p *Protocol) Call(rw io.ReadWriter, secret []byte) (*Exchange, error) {
	x, hello := p.Initiate(secret)
	if x.err != nil {
		return nil, x.err
	}
	if _, err := rw.Write(hello); err != nil {
		return nil, err
	}
	if _, err := x.Hear(rw); err != nil {
		return nil, err
	}
	return x, nil
}

// Hear takes what the peer says until it is this side's turn or the handshake is over, and
// returns the body of the peer's last message. It reads nothing beyond that message. An
// error of the connection is returned as it is.
func (x *Exchange) Hear(rw io.ReadWriter) ([]byte, error) {
	var buf [1024]byte
	if x.err != nil {
		return nil, x.err
	}
	for x.Missing() > 0 {
		n, err := rw.Read(buf[:min(len(buf), x.Missing())])
		if n == 0 && err != nil {
			return nil, err
		}
		answer, err := x.Take(buf[:n])
		if len(answer) > 0 {
			if _, failed := rw.Write(answer); err == nil {
				err = failed
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return x.body, nil
}

// Tell says this side's next message.
func (x *Exchange) Tell(w io.Writer, body []byte) error {
	_, err := w.Write(x.Say(body))
	return err
}
