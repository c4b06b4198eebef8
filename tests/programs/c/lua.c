/* Runs a script of Lua: `lua SCRIPT`. */
#include <lua5.4/lauxlib.h>
#include <lua5.4/lualib.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    if (argc != 2 || luaL_dofile(lua, argv[1]))
        return fprintf(stderr, "lua: %s\n", argc == 2 ? lua_tostring(lua, -1) : "name a script"), 1;
    lua_close(lua);
    return 0;
}
