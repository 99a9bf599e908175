// Go's clientv3/concurrency, as a peer of `cargo xtask interop`. What it is told and says: ../README.md.
//
// The surprise: a Mutex does not say whether an unlock found its key, so this can only say `release: sent`, or `lost` if
// the session had said by then that it is over.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

const (
	client      = "go.etcd.io/etcd/client/v3"
	dialTakes   = 5 * time.Second
	unlockTakes = 10 * time.Second
)

// peer is one client with one mutex, and the session that the mutex lives by.
type peer struct {
	client  *clientv3.Client
	name    string
	ttl     int
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

// take locks, with a new session if the old one is over. That it is over may show only when its lease is used.
func (p *peer) take() error {
	for {
		if p.session == nil {
			session, err := concurrency.NewSession(p.client, concurrency.WithTTL(p.ttl))
			if err != nil {
				return err
			}
			p.session, p.mutex = session, concurrency.NewMutex(session, p.name)
		}
		err := p.mutex.Lock(context.Background())
		if err == nil {
			fmt.Println("held")
			return nil
		}
		select {
		case <-p.session.Done():
			p.session = nil
		case <-time.After(unlockTakes):
			return err
		}
	}
}

func (p *peer) release() error {
	select {
	case <-p.session.Done():
		p.session = nil
		fmt.Println("release: lost (the session is over)")
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(context.Background(), unlockTakes)
	defer cancel()
	if err := p.mutex.Unlock(ctx); err != nil {
		return err
	}
	fmt.Println("release: sent")
	return nil
}

func (p *peer) follow(order string) error {
	switch order {
	case "take":
		return p.take()
	case "release":
		return p.release()
	default:
		return fmt.Errorf("an order that cannot be followed: %s", order)
	}
}

func run(url, name, leaseMs string) error {
	ms, err := strconv.Atoi(leaseMs)
	if err != nil {
		return err
	}
	endpoint := strings.TrimPrefix(url, "etcd://")
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, DialTimeout: dialTakes})
	if err != nil {
		return err
	}
	defer etcd.Close()
	// A lease of etcd is whole seconds.
	p := &peer{client: etcd, name: name, ttl: (ms + 999) / 1000}
	if err := p.take(); err != nil {
		return err
	}
	orders := bufio.NewScanner(os.Stdin)
	for orders.Scan() {
		if err := p.follow(orders.Text()); err != nil {
			return err
		}
	}
	return orders.Err()
}

// version is that of the client, from what the program was built of.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {
		if module.Path == client {
			return strings.TrimPrefix(module.Version, "v")
		}
	}
	return "of an unknown version"
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		fmt.Printf("etcd clientv3 concurrency %s, %s\n", version(), runtime.Version())
		return
	}
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: go-concurrency URL NAME LEASE_MS")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
