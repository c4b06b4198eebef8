//line /plain.go:1
package plain

type node struct {
	left, right *node
	value       int
}

func (n *node) insert(value int) *node {
	if n == nil {
		return &node{value: value}
	}
	if value < n.value {
		n.left = n.left.insert(value)
	} else {
		n.right = n.right.insert(value)
	}
	return n
}

func Sum(values []int) (sum int) {
	var root *node
	for _, value := range values {
		root = root.insert(value)
	}
	var visit func(*node)
	visit = func(n *node) {
		if n != nil {
			visit(n.left)
			sum += n.value
			visit(n.right)
		}
	}
	visit(root)
	return sum
}
