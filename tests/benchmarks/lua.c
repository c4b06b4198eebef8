/* Runs a script of Lua: `lua SCRIPT ARGUMENT…`. */
#include <lua5.4/lauxlib.h>
#include <lua5.4/lualib.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    lua_State *lua = luaL_newstate();
    luaL_openlibs(lua);
    if (argc < 2 || luaL_loadfile(lua, argv[1]))
        return fprintf(stderr, "lua: %s\n", argc < 2 ? "name a script" : lua_tostring(lua, -1)), 1;
    for (int i = 2; i < argc; i++)
        lua_pushstring(lua, argv[i]);
    if (lua_pcall(lua, argc - 2, 0, 0))
        return fprintf(stderr, "lua: %s\n", lua_tostring(lua, -1)), 1;
    lua_close(lua);
    return 0;
}
