package main
import "fmt"
func main(){ x:=map[string]int{ "a":1,
"bc":2 }
for k,v:=range x{fmt.Println(k,v)} }
