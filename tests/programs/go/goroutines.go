// A program of goroutines, channels, timers, maps, a collector at work, and a panic.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func primes(limit int) int {
	first := make(chan int)
	go func() {
		for n := 2; n < limit; n++ {
			first <- n
		}
		close(first)
	}()
	count := 0
	for from := first; ; {
		prime, more := <-from
		if !more {
			return count
		}
		count++
		to := make(chan int)
		go func(from, to chan int) {
			for n := range from {
				if n%prime != 0 {
					to <- n
				}
			}
			close(to)
		}(from, to)
		from = to
	}
}

func words(name string) {
	file, err := os.Open(name)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer file.Close()
	counts := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		for _, word := range strings.Fields(lines.Text()) {
			counts[word]++
		}
	}
	all := make([]string, 0, len(counts))
	for word := range counts {
		all = append(all, word)
	}
	sort.Slice(all, func(i, j int) bool {
		return counts[all[i]] > counts[all[j]] || counts[all[i]] == counts[all[j]] && all[i] < all[j]
	})
	for _, word := range all[:5] {
		fmt.Println(counts[word], word)
	}
}

func garbage() {
	var total atomic.Int64
	var group sync.WaitGroup
	for worker := 0; worker < 4; worker++ {
		group.Add(1)
		go func() {
			defer group.Done()
			kept := [][]byte{}
			for i := 0; i < 400; i++ {
				kept = append(kept, make([]byte, 20000))
				if len(kept) > 10 {
					kept = kept[5:]
				}
			}
			total.Add(int64(len(kept)))
		}()
	}
	group.Wait()
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	fmt.Println(total.Load(), stats.NumGC > 3)
}

func main() {
	fmt.Println(primes(300))
	words(os.Args[1])
	garbage()
	limit, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	select {
	case <-limit.Done():
		fmt.Println(limit.Err())
	case <-time.After(10 * time.Second):
		fmt.Println("late")
	}
	func() {
		defer func() { fmt.Println("recovered:", recover()) }()
		var pointer *[4]int
		fmt.Println(pointer[2])
	}()
	os.WriteFile("go.out", []byte(strings.Repeat("written\n", 1000)), 0o644)
	os.Exit(3)
}
